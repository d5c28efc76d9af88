import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "@turnbox/core";
import type { ContainerLimits, ContainerSpec, ExecExit, Execution, ExecSpec, Runtime } from "../runtime.ts";

export type Argv = readonly [string, ...string[]];

/** How an adapter is asked for each behaviour. Paths are below the working directory `/workspace`. */
export interface RuntimePrograms {
  prints(output: { readonly stdout: string; readonly stderr: string; readonly exitCode: number }): Argv;
  /** Writes its standard input to its standard output, and exits when the input ends. */
  copiesInput(): Argv;
  printsEnvironment(): Argv;
  printsDirectory(): Argv;
  printsFile(path: string): Argv;
  writesFile(path: string, text: string): Argv;
  /** Writes so many bytes. */
  floods(bytes: number): Argv;
  /** Does nothing until it is killed. */
  waits(): Argv;
  /** Lets a file grow until it is killed. */
  counts(path: string): Argv;
}

export interface RuntimeHarness extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly programs: RuntimePrograms;
  /** Another instance over the same state, as a restarted service has. */
  reopen(): Runtime;
  /** A container that is not started, with a root that has a `/workspace`. */
  newContainer(limits?: ContainerLimits): Promise<ContainerSpec>;
  /** Ends the sandbox of a running container from outside, by force. */
  crash?(id: string): Promise<void>;
  /** What containers of these ids have left on the machine: processes, mounts, cgroups, state. */
  leftovers(ids: readonly string[]): Promise<readonly string[]>;
}

/** What holds for an adapter beyond the port. */
export interface RuntimeTraits {
  /** Whether programs are real ones, started by a shell. */
  readonly shell: "yes" | "no";
  /** Variables that the runtime adds to the environment of every process. */
  readonly addedVariables: readonly string[];
}

export const PATH = "/usr/local/bin:/usr/bin:/bin";
export const call = { signal: AbortSignal.timeout(600_000) };

export function execSpec(argv: Argv, more: Partial<ExecSpec> = {}): ExecSpec {
  return { argv, env: { PATH, HOME: "/" }, cwd: "/workspace", deadlineMs: 60_000, ...more };
}

export function sh(script: string): Argv {
  return ["/bin/sh", "-c", script];
}

export interface Outcome {
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly exit: ExecExit;
}

/** Gives it its input, reads all it writes, and waits for its end. */
export async function finish(execution: Execution, stdin = ""): Promise<Outcome> {
  execution.stdin.end(stdin);
  const [stdout, stderr, exit] = await Promise.all([
    buffer(execution.stdout),
    buffer(execution.stderr),
    execution.exit,
  ]);
  return { stdout, stderr: stderr.toString("utf8"), exit };
}

/** Reads and drops what it writes, so that it is never held up. */
export function ignoreOutput(execution: Execution): Execution {
  execution.stdout.resume();
  execution.stderr.resume();
  return execution;
}

export async function run(runtime: Runtime, id: string, argv: Argv, more: Partial<ExecSpec> = {}): Promise<Outcome> {
  return await finish(await runtime.exec(id, execSpec(argv, more), call));
}

/** How many processes inside have exactly this argument. */
export async function countProcesses(runtime: Runtime, id: string, argument: string): Promise<number> {
  const listing = await run(runtime, id, sh(`cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\000' '\\n'`));
  return listing.stdout
    .toString("utf8")
    .split("\n")
    .filter((line) => line === argument).length;
}

export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(20);
  }
}

export async function reasonOf(promise: Promise<unknown>): Promise<string> {
  const thrown = await promise.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
  return thrown instanceof SandboxError ? thrown.reason : String(thrown);
}
