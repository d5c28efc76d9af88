import type { Clock, CommandExit, RunningCommand } from "@turnbox/core";
import type { ExecExit, Execution } from "../runtime.ts";
import type { OutputRelay } from "./relay-output.ts";

const MAX_DEADLINE_MS = 2 ** 31 - 1;
/** Between asking a process to end and ending it. */
const TERMINATE_GRACE_MS = 2000;
/** How long the host-side command of a tree that is gone may take to notice. */
const COMMAND_GRACE_MS = 2000;
/** How long the reader of a killed process may take for what it had written. */
const READER_GRACE_MS = 1000;
const KILL_ATTEMPTS = 3;
/** Not seen outside: a reason of its own would be made, with its stack, at the end of each execution. */
const SETTLED = new Error("the execution has ended");

/** What stands for the process on the host: a command, or something that is asked in the same way. */
export type SupervisedCommand = Pick<RunningCommand, "stdin" | "ended" | "kill">;

/** What an adapter knows about a process that it has started. */
export interface SupervisedProcess {
  readonly command: SupervisedCommand;
  readonly stdout: OutputRelay;
  readonly stderr: OutputRelay;
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Asks the process and its group to end. */
  terminate(): Promise<void>;
  /** Ends the whole tree, whether or not the process itself still runs, and verifies that. */
  killTree(main: "running" | "ended"): Promise<void>;
  /** What the end of the command means when it was not asked for. Never rejects. */
  judge(exit: CommandExit): Promise<ExecExit>;
}

/** Owns a started process up to its end: its deadline, its death and the end of its outputs. */
export function superviseExecution(subject: SupervisedProcess): Execution {
  const supervisor = new Supervisor(subject);
  return {
    stdin: subject.command.stdin,
    stdout: subject.stdout.output,
    stderr: subject.stderr.output,
    exit: supervisor.conclude(),
    kill: () => supervisor.kill(),
  };
}

class Supervisor {
  readonly #subject: SupervisedProcess;
  readonly #ended: Promise<CommandExit>;
  readonly #enforcing: Promise<void>;
  /** Aborted when the outputs are no longer waited for. */
  readonly #outputLimit = new AbortController();
  readonly #settled = new AbortController();
  #main: "running" | "ended" = "running";
  #verdict: { readonly kind: "timed_out" | "killed" } | undefined;
  #treeEnd: Promise<void> | undefined;

  constructor(subject: SupervisedProcess) {
    this.#subject = subject;
    this.#ended = subject.command.ended.then((exit) => {
      this.#main = "ended";
      return exit;
    });
    this.#enforcing = quietly(this.#enforceDeadline());
  }

  async conclude(): Promise<ExecExit> {
    const { command, stdout, stderr } = this.#subject;
    const exit = await this.#ended;
    const verdict = this.#verdict;
    // A verdict is given when it is true of the whole tree. At the deadline, its enforcement is on the way to that already.
    if (verdict !== undefined) await (verdict.kind === "timed_out" ? this.#enforcing : quietly(this.#endTree()));
    const result = this.#verdict ?? (await this.#subject.judge(exit));
    if (result.kind !== "exited") this.#limitOutput();
    const limit = this.#outputLimit.signal;
    await Promise.all([stdout.drain(limit), stderr.drain(limit)]);
    await Promise.race([Promise.all([stdout.consumed, stderr.consumed]), aborted(limit)]);
    this.#settled.abort(SETTLED);
    // It is not read any more; one that its owner has not ended would be held open without end.
    command.stdin.destroy();
    return result;
  }

  async kill(): Promise<void> {
    if (this.#main === "running") this.#verdict ??= { kind: "killed" };
    await this.#endTree();
  }

  async #endTree(): Promise<void> {
    this.#treeEnd ??= this.#killAndReap().catch((thrown: unknown) => {
      this.#treeEnd = undefined;
      throw thrown;
    });
    await this.#treeEnd;
  }

  async #killAndReap(): Promise<void> {
    const { command, stdout, stderr, clock } = this.#subject;
    stdout.hold();
    stderr.hold();
    await this.#subject.killTree(this.#main);
    const limit = new AbortController();
    await Promise.race([this.#ended, quietly(clock.sleep(COMMAND_GRACE_MS, { signal: limit.signal }))]);
    limit.abort();
    command.kill();
    this.#limitOutput();
  }

  /** Readers have a while for what is there already. */
  #limitOutput(): void {
    const end = (): void => {
      this.#outputLimit.abort();
    };
    this.#subject.clock.sleep(READER_GRACE_MS, { signal: this.#settled.signal }).then(end, end);
  }

  async #enforceDeadline(): Promise<void> {
    const { command, clock, deadlineMs } = this.#subject;
    await clock.sleep(Math.min(deadlineMs, MAX_DEADLINE_MS), { signal: this.#settled.signal });
    if (this.#main === "ended") {
      this.#outputLimit.abort();
      return;
    }
    this.#verdict ??= { kind: "timed_out" };
    const grace = new AbortController();
    await Promise.race([
      quietly(this.#subject.terminate().then(() => this.#ended)),
      quietly(clock.sleep(TERMINATE_GRACE_MS, { signal: grace.signal })),
    ]);
    grace.abort();
    for (let attempt = 1; attempt <= KILL_ATTEMPTS && this.#treeEnd === undefined; attempt += 1)
      await quietly(this.#endTree());
    command.kill();
  }
}

/** Settles with the promise, and forgets its failure: the caller goes on either way. */
async function quietly(promise: Promise<unknown>): Promise<void> {
  await promise.then(
    () => undefined,
    () => undefined,
  );
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      "abort",
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
