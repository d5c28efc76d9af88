import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Health } from "@turnbox/protocol/health/v1/health_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";

const SERVER = join(import.meta.dirname, "read-server.ts");

/** The least that a file read over RPC in a process of its own takes: Connect's client here, read-server.ts there. */
export class BareRead implements Disposable {
  readonly #child: ChildProcess;
  readonly #tools: Client<typeof ToolService>;
  readonly #health: Client<typeof Health>;

  private constructor(child: ChildProcess, baseUrl: string) {
    const line = () => createConnectTransport({ baseUrl, httpVersion: "2", acceptCompression: [] });
    this.#child = child;
    this.#tools = createClient(ToolService, line());
    this.#health = createClient(Health, line());
  }

  static async open(): Promise<BareRead> {
    const child = spawn(process.execPath, ["--no-warnings", SERVER], { stdio: ["pipe", "pipe", "inherit"] });
    const [port] = (await once(child.stdout, "data")) as [Buffer];
    return new BareRead(child, `http://127.0.0.1:${port.toString().trim()}`);
  }

  /** An empty call. */
  async empty(): Promise<void> {
    await this.#health.check({});
  }

  /** A file of this machine; answers with what it shows. */
  async read(path: string): Promise<string> {
    const call = { sessionId: "bare", toolName: "read_file", toolCallId: randomUUID(), params: { path } };
    return (await this.#tools.executeTool(call)).content;
  }

  [Symbol.dispose](): void {
    this.#child.stdin?.end();
  }
}
