import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, type Finished, poll, REPO, run } from "./process.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");

/** A real server of its own home: orchestrator, host, ZFS pool, gVisor. */
export interface TestServer extends AsyncDisposable {
  readonly home: string;
  readonly url: string;
  readonly token: string;
  readonly process: ChildProcess;
  /** What it has printed so far. */
  output(): string;
  /** Runs the command line against this server. */
  cli(...args: readonly string[]): Promise<Finished>;
  /** The same, with text on stdin. */
  pipe(stdin: string | Buffer, ...args: readonly string[]): Promise<Finished>;
  /** Runs it with --json, requires success and answers with what it printed. */
  json(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** Ends the server and waits for it; the home stays. */
  stop(signal?: NodeJS.Signals): Promise<number>;
}

export interface ServerOptions {
  /** A home that outlives this server, for tests of restarts. */
  readonly home?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The program that serves, with its arguments; `turnbox up` of this code unless given. */
  readonly program?: readonly string[];
}

export function environment(home: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("TURNBOX_") && name !== "NODE_OPTIONS",
  );
  return {
    ...Object.fromEntries(inherited),
    TURNBOX_HOME: home,
    TURNBOX_PORT: "0",
    TURNBOX_POOL_SIZE: "4GiB",
    ...more,
  };
}

export async function makeHome(): Promise<AsyncDisposable & { readonly path: string }> {
  const parent = await mkdtemp(join(tmpdir(), "turnbox-e2e-"));
  const path = join(parent, "home");
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      const reset = await run(process.execPath, [CLI, "reset", "--yes"], { env: environment(path) });
      if (reset.exitCode !== 0) throw new Error(`the home could not be removed: ${reset.stderr}`);
      await rm(parent, { recursive: true, force: true });
    },
  };
}

/** Starts a server and waits for its ready line. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const ownHome = options.home === undefined ? await makeHome() : undefined;
  const home = options.home ?? ownHome?.path ?? "";
  const env = environment(home, options.env);
  const program = options.program ?? [CLI, "up"];
  const child = spawn(process.execPath, [...program], { cwd: REPO, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exit = ended(child);
  let exited = false;
  void exit.then(() => {
    exited = true;
  });
  const url = await poll(
    "the ready line",
    () => {
      if (exited) throw new Error(`the server ended: ${output}`);
      return /^turnbox ready (http:\S+)$/m.exec(output)?.[1];
    },
    90_000,
  );
  const cliEnv = { ...env, TURNBOX_PORT: new URL(url).port };
  const call = (args: readonly string[], stdin?: string | Buffer): Promise<Finished> =>
    run(process.execPath, [CLI, ...args], { env: cliEnv, ...(stdin === undefined ? {} : { stdin }) });
  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<number> => {
    if (!exited) child.kill(signal);
    return await exit;
  };
  return {
    home,
    url,
    token: (await readFile(join(home, "token"), "utf8")).trim(),
    process: child,
    output: () => output,
    cli: (...args) => call(args),
    pipe: (stdin, ...args) => call(args, stdin),
    json: async (...args) => {
      const result = await call([...args, "--json"]);
      if (result.exitCode !== 0)
        throw new Error(`turnbox ${args.join(" ")}: exit ${result.exitCode}: ${result.stdout}${result.stderr}`);
      return JSON.parse(result.stdout) as Record<string, unknown>;
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
      await ownHome?.[Symbol.asyncDispose]();
    },
  };
}
