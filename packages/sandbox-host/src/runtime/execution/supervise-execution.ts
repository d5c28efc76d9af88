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
/** Nobody sees it: a reason of its own would be made, with its stack, at the end of each execution. */
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
  /** What the end of the command means where nobody asked for it. Never rejects. */
  judge(exit: CommandExit): Promise<ExecExit>;
}

/** Owns a started process up to its end: its deadline, its death and the end of its outputs. */
export function superviseExecution(subject: SupervisedProcess): Execution {
  const { command, stdout, stderr, clock } = subject;
  let main: "running" | "ended" = "running";
  let verdict: { readonly kind: "timed_out" | "killed" } | undefined;
  let treeEnd: Promise<void> | undefined;
  /** Aborted when the outputs are no longer waited for. */
  const outputLimit = new AbortController();
  const settled = new AbortController();
  const ended = command.ended.then((exit) => {
    main = "ended";
    return exit;
  });

  const endTree = async (): Promise<void> => {
    treeEnd ??= killAndReap().catch((thrown: unknown) => {
      treeEnd = undefined;
      throw thrown;
    });
    await treeEnd;
  };
  /** Readers have a while for what is there already. */
  const limitOutput = (): void => {
    const end = (): void => {
      outputLimit.abort();
    };
    clock.sleep(READER_GRACE_MS, { signal: settled.signal }).then(end, end);
  };
  const killAndReap = async (): Promise<void> => {
    stdout.hold();
    stderr.hold();
    await subject.killTree(main);
    const limit = new AbortController();
    await Promise.race([ended, quietly(clock.sleep(COMMAND_GRACE_MS, { signal: limit.signal }))]);
    limit.abort();
    command.kill();
    limitOutput();
  };

  const enforceDeadline = async (): Promise<void> => {
    await clock.sleep(Math.min(subject.deadlineMs, MAX_DEADLINE_MS), { signal: settled.signal });
    if (main === "ended") {
      outputLimit.abort();
      return;
    }
    verdict ??= { kind: "timed_out" };
    const grace = new AbortController();
    await Promise.race([
      quietly(subject.terminate().then(() => ended)),
      quietly(clock.sleep(TERMINATE_GRACE_MS, { signal: grace.signal })),
    ]);
    grace.abort();
    for (let attempt = 1; attempt <= KILL_ATTEMPTS && treeEnd === undefined; attempt += 1) await quietly(endTree());
    command.kill();
  };
  const enforcing = quietly(enforceDeadline());

  const conclude = async (): Promise<ExecExit> => {
    const exit = await ended;
    // A verdict is told when it is true of the whole tree. At the deadline, its enforcement is on the way to that already.
    if (verdict !== undefined) await (verdict.kind === "timed_out" ? enforcing : quietly(endTree()));
    const result = verdict ?? (await subject.judge(exit));
    if (result.kind !== "exited") limitOutput();
    await Promise.all([stdout.drain(outputLimit.signal), stderr.drain(outputLimit.signal)]);
    await Promise.race([Promise.all([stdout.consumed, stderr.consumed]), aborted(outputLimit.signal)]);
    settled.abort(SETTLED);
    // Nobody reads it any more; one that its owner has not ended would be held open for ever.
    command.stdin.destroy();
    return result;
  };

  return {
    stdin: command.stdin,
    stdout: stdout.output,
    stderr: stderr.output,
    exit: conclude(),
    kill: async () => {
      if (main === "running") verdict ??= { kind: "killed" };
      await endTree();
    },
  };
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
