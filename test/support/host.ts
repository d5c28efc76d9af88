import { type ChildProcess, spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { loadOrCreateHomeToken, loadOrCreateSigningKeys, openHome } from "@turnbox/core";
import { ended, poll, REPO } from "./process.ts";
import { environment, makeHome } from "./server.ts";

const ENTRY = join(REPO, "packages/sandbox-host/bin/turnbox-sandbox-host.mjs");

const READY_MS = 90_000;

export type Json = Readonly<Record<string, unknown>>;

/** The host answered, and its answer is a refusal. */
export class Refusal extends Error {
  readonly reason: string;
  constructor(method: string, reason: string, message: string) {
    super(`${method}: ${reason}: ${message}`);
    this.reason = reason;
  }
}

/**
 * A real sandbox-host of its own home (ZFS, gVisor) without an orchestrator: the test is its parent, so that it is
 * started again at once and not after the pause that a failing host is given.
 */
export interface TestHost extends AsyncDisposable {
  readonly home: string;
  readonly dataDirectory: string;
  readonly pid: number;
  /** Where it is served now; another address after each start. */
  readonly url: string;
  /** Calls a method such as `SessionService/GetSession`, by JSON over HTTP. Throws `Refusal`. */
  call(method: string, body?: Json): Promise<Json>;
  /** The same for a host that may die under the call: undefined then. */
  attempt(method: string, body?: Json): Promise<Json | undefined>;
  /** Waits until the process has ended by itself. */
  death(timeoutMs?: number): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Ends it if it runs, by SIGTERM, and waits. */
  stop(): Promise<void>;
  /** Starts it on the same data, with these variables beside its own, as the program it was or as another. Answers when it serves, with how long that took. */
  start(env?: Readonly<Record<string, string>>, program?: HostProgram): Promise<{ readonly servedAfterMs: number }>;
}

/** What the host is run as. */
export interface HostProgram {
  /** This code's unless given. */
  readonly entry?: string;
  /** What the program is run by, such as `nsenter` with its arguments. */
  readonly launcher?: readonly string[];
}

export interface TestHostOptions extends HostProgram {
  readonly env?: Readonly<Record<string, string>>;
  /** A home that somebody else removes. */
  readonly home?: string;
  /** Which of the hosts of its home it is. */
  readonly instanceId?: string;
  /** Any free one unless given. */
  readonly port?: number;
}

export async function startHost(options: TestHostOptions = {}): Promise<TestHost> {
  const own = options.home === undefined ? await makeHome() : undefined;
  const home = options.home ?? own?.path ?? "";
  await mkdir(home, { recursive: true, mode: 0o700 });
  openHome(home);
  loadOrCreateSigningKeys(join(home, "keys"));
  const token = loadOrCreateHomeToken(join(home, "token")).reveal();
  const dataDirectory = join(home, "hosts", options.instanceId ?? "local-1");
  const serve = ["serve", "--home", home, "--data-dir", dataDirectory, "--port", String(options.port ?? 0)];
  let current: Running | undefined;
  const running = (): Running => {
    if (current === undefined) throw new Error("the host is not running");
    return current;
  };

  const call = async (method: string, body: Json = {}): Promise<Json> => {
    const response = await fetch(`${running().url}/turnbox.host.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(120_000),
    });
    const answer = (await response.json()) as Json;
    if (response.ok) return answer;
    const details = answer["details"] as readonly { readonly debug?: { readonly reason?: string } }[] | undefined;
    throw new Refusal(method, details?.[0]?.debug?.reason ?? String(answer["code"]), String(answer["message"]));
  };
  const start: TestHost["start"] = async (more, program = options) => {
    const begunMs = performance.now();
    const env = environment(home, { TURNBOX_NO_APT: "1", ...options.env, ...more });
    const command = [...(program.launcher ?? []), process.execPath, program.entry ?? ENTRY, ...serve];
    current = await launch(command[0] ?? "", command.slice(1), env);
    return { servedAfterMs: performance.now() - begunMs };
  };
  const stop = async (): Promise<void> => {
    current?.child.kill("SIGTERM");
    await current?.exit;
    current = undefined;
  };
  try {
    await start();
  } catch (thrown) {
    await own?.[Symbol.asyncDispose]();
    throw thrown;
  }
  return {
    home,
    dataDirectory,
    get pid() {
      return running().pid;
    },
    get url() {
      return running().url;
    },
    call,
    attempt: async (method, body) => {
      try {
        return await call(method, body);
      } catch (thrown) {
        if (thrown instanceof Refusal) throw thrown;
        return undefined;
      }
    },
    death: async (timeoutMs = 60_000) => {
      const { child } = running();
      await poll("the host to end", () => child.exitCode ?? child.signalCode ?? undefined, timeoutMs);
    },
    kill: async () => {
      const { pid, exit } = running();
      process.kill(pid, "SIGKILL");
      await exit;
    },
    stop,
    start,
    [Symbol.asyncDispose]: async () => {
      await stop();
      await own?.[Symbol.asyncDispose]();
    },
  };
}

interface Running {
  readonly child: ChildProcess;
  readonly exit: Promise<number>;
  readonly url: string;
  /** The service's own; a launcher may stand between. */
  readonly pid: number;
}

/** Starts the program and waits for the line in which it says that it is ready. */
async function launch(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Running> {
  const child = spawn(program, [...args], { cwd: REPO, env, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => undefined);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exit = ended(child);
  let over = false;
  void exit.then(() => {
    over = true;
  });
  const look = (): { readonly url: string; readonly pid: number } | undefined => {
    if (over) throw new Error(`the host ended: ${output}`);
    const line = /^\{"event":"ready".*\}$/m.exec(output)?.[0];
    return line === undefined ? undefined : (JSON.parse(line) as { url: string; pid: number });
  };
  try {
    return { child, exit, ...(await poll("the host to be ready", look, READY_MS, 5)) };
  } catch (thrown) {
    child.kill("SIGKILL");
    throw thrown;
  }
}
