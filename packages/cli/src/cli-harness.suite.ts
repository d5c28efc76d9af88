import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectServices, type Fault, NOW_MS, type SeenCall, type Services } from "@turnbox/client/fake";
import { parseEnvironment } from "@turnbox/client/internal";
import { type Clock, createChildCommandRunner } from "@turnbox/core";
import { createInterrupts, type InterruptSignal } from "./interrupts.ts";
import { runCli } from "./run-cli.ts";
import type { InputStream, OutputStream, Surroundings } from "./surroundings.ts";

export const HOME_TOKEN = "home-token";

export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Stdout as one JSON object. */
  json(): Readonly<Record<string, unknown>>;
}

export interface RunInput {
  /** A terminal unless given. */
  readonly stdin?: string | InputStream;
  readonly ask?: Surroundings["ask"];
  /** On top of TURNBOX_HOME and PATH. */
  readonly variables?: Readonly<Record<string, string>>;
  /** A pipe unless given. */
  readonly stdout?: { readonly isTTY: true } & Pick<OutputStream, "rows" | "columns" | "on" | "off">;
  /** Told whenever something was written to stdout. */
  readonly onStdout?: () => void;
  /** A pipe unless given. */
  readonly stderr?: { readonly isTTY: true };
  /** Time passes by itself and in no time unless given. */
  readonly clock?: Clock;
}

export interface Harness extends AsyncDisposable {
  readonly home: string;
  /** Every call that was made: who was asked, with which token, for what. */
  readonly calls: SeenCall[];
  /** What happens to the next calls of a method, one after the other. */
  readonly faults: Map<string, Fault[]>;
  run(args: readonly string[], input?: RunInput): Promise<Ran>;
  /** What the terminal sends. */
  interrupt(name: InterruptSignal): void;
}

/** The command line over services in memory, with a home of its own whose server has written a token. */
export async function createHarness(services: Services): Promise<Harness> {
  const home = await mkdtemp(join(tmpdir(), "turnbox-cli-"));
  await writeFile(join(home, "home.json"), '{"version":1,"id":"abcdefgh"}');
  await writeFile(join(home, "token"), `${HOME_TOKEN}\n`, { mode: 0o600 });
  const calls: SeenCall[] = [];
  const faults = new Map<string, Fault[]>();
  const signals = new Map<InterruptSignal, () => void>();
  const connect = connectServices(services, { calls, faults });
  return {
    home,
    calls,
    faults,
    run: async (args, { stdin, ask, variables = {}, clock = createJumpingClock(), ...outputs } = {}) => {
      const stdout = { ...createMemoryStream(outputs.onStdout), ...outputs.stdout };
      const stderr = { ...createMemoryStream(), ...outputs.stderr };
      const source = {
        on: (name: InterruptSignal, listener: () => void) => signals.set(name, listener),
        off: (name: InterruptSignal) => signals.delete(name),
      };
      using interrupts = createInterrupts(source, () => undefined);
      const exitCode = await runCli(args, {
        environment: parseEnvironment({ TURNBOX_HOME: home, PATH: "/usr/bin:/bin", ...variables }),
        version: "0.0.0",
        searchFrom: [home],
        stdin: typeof stdin === "object" ? stdin : createInput(stdin),
        stdout,
        stderr,
        ...(ask === undefined ? {} : { ask }),
        clock,
        runner: createChildCommandRunner(),
        interrupts,
        connect,
      });
      const out = stdout.text();
      const json = (): Readonly<Record<string, unknown>> => JSON.parse(out) as Readonly<Record<string, unknown>>;
      return { exitCode, stdout: out, stderr: stderr.text(), json };
    },
    interrupt: (name) => signals.get(name)?.(),
    [Symbol.asyncDispose]: async () => {
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Programs that stand in for the services and are found as the real ones are. */
export async function installServices(
  home: string,
  programs: { readonly orchestrator?: string; readonly host?: string },
): Promise<void> {
  const install = async (name: string, source: string): Promise<void> => {
    const root = join(home, "node_modules/@turnbox", name);
    await mkdir(root, { recursive: true });
    await writeFile(join(root, "package.json"), JSON.stringify({ version: "9.9.9", bin: `turnbox-${name}.mjs` }));
    await writeFile(join(root, `turnbox-${name}.mjs`), source);
  };
  await install("orchestrator", programs.orchestrator ?? "");
  await install("sandbox-host", programs.host ?? "");
}

function createMemoryStream(onWrite?: () => void): OutputStream & { text(): string } {
  const chunks: Uint8Array[] = [];
  return {
    write: (bytes, done) => {
      chunks.push(Buffer.from(bytes));
      onWrite?.();
      done();
    },
    text: () => Buffer.concat(chunks).toString("utf8"),
  };
}

function createInput(text: string | undefined): InputStream {
  return {
    isTTY: text === undefined,
    async *[Symbol.asyncIterator]() {
      if (text !== undefined) yield await Promise.resolve(Buffer.from(text));
    },
  };
}

/** Sleeping takes no time, and still lets it pass. */
function createJumpingClock(): Clock {
  let monotonicMs = 0;
  return {
    nowMs: () => NOW_MS,
    monotonicMs: () => monotonicMs,
    sleep: async (ms, { signal } = {}) => {
      // Long sleeps are for what does not come in a test; they end only with their signal.
      if (ms >= 1000) await new Promise((_, reject) => signal?.addEventListener("abort", reject));
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      monotonicMs += ms;
    },
  };
}
