import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Client, credentials, makeClientConstructor } from "@grpc/grpc-js";
import { BARE_SERVICE, MESSAGE_BYTES } from "./grpc-contract.ts";

const SERVER = join(import.meta.dirname, "grpc-server.ts");

/** grpc-js and nothing else: a client here, a server in a child process. */
export class BareGrpc implements Disposable {
  readonly #child: ChildProcess;
  readonly #client: Client;

  private constructor(child: ChildProcess, client: Client) {
    this.#child = child;
    this.#client = client;
  }

  static async open(): Promise<BareGrpc> {
    const child = spawn(process.execPath, [SERVER], { stdio: ["pipe", "pipe", "inherit"] });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const BareClient = makeClientConstructor(BARE_SERVICE, "Bare");
    return new BareGrpc(child, new BareClient(`127.0.0.1:${line.toString().trim()}`, credentials.createInsecure()));
  }

  /** An empty unary call. */
  async empty(): Promise<void> {
    const { path, requestSerialize, responseDeserialize } = BARE_SERVICE.empty;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#client.makeUnaryRequest(path, requestSerialize, responseDeserialize, Buffer.alloc(0), (failure) => {
      if (failure === null) resolve();
      else reject(failure);
    });
    await promise;
  }

  /** Reads that many bytes in messages of 64 KiB; answers with how many came. */
  async stream(bytes: number): Promise<number> {
    const { path, requestSerialize, responseDeserialize } = BARE_SERVICE.stream;
    const request = Buffer.alloc(4);
    request.writeUInt32BE(Math.ceil(bytes / MESSAGE_BYTES));
    const call = this.#client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
    let received = 0;
    for await (const message of call as AsyncIterable<Buffer>) received += message.length;
    return received;
  }

  [Symbol.dispose](): void {
    this.#client.close();
    this.#child.stdin?.end();
  }
}
