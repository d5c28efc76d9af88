import type { Readable, Writable } from "node:stream";
import {
  type Clock,
  type CommandExit,
  type CommandRunner,
  type CommandSpec,
  hasReason,
  type RunSpec,
  SandboxError,
} from "@turnbox/core";
import { classifyFailure, type Failure, storageError } from "./failure.ts";
import { inMountTurn, mayMount, MOUNT_LOCK_WAIT_MS, NO_TURN_EXIT_CODE } from "./mount-lock.ts";

/**
 * How one invocation ended. `unknown`: it was ended before it answered, so its effect has to be looked up. A child that
 * waits for a hung filesystem cannot even be killed; then `lingering` settles when it has gone at last.
 */
export type Outcome =
  | { readonly kind: "done"; readonly stdout: string }
  | { readonly kind: "refused"; readonly failure: Failure; readonly stderr: string }
  | { readonly kind: "unknown"; readonly cause: SandboxError; readonly lingering?: Promise<unknown> };

/** How one invocation ended of which only the beginning was wanted; `more` came than was asked for, and it was let go. */
export type BoundedRead =
  | { readonly kind: "whole"; readonly bytes: number }
  | { readonly kind: "more" }
  | Exclude<Outcome, { kind: "done" }>;

export interface Invocation {
  readonly program: "zfs" | "zpool" | "zfs-fuse" | "mount" | "umount" | "stat" | "sync" | "rm";
  readonly args: readonly string[];
  readonly deadlineMs?: number;
  /** See `RunSpec.outputPath`. */
  readonly outputPath?: string;
}

/** A command whose input or output is a stream. Its owner bounds how long it runs, and reads or ends both. */
export interface StreamingCommand {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Never rejects. Settles when the command has ended and its outputs are closed. */
  readonly outcome: Promise<Outcome>;
  kill(): void;
}

/** A change, and how to see that it is made. */
export interface Change extends Invocation {
  /** In the gerund, for messages: "taking a snapshot". */
  readonly doing: string;
  /** Whether the change has been made; called if the outcome is unknown. */
  readonly isDone: (signal: AbortSignal) => Promise<boolean>;
}

/** How long a killed child may take to go. */
const REAP_GRACE_MS = 1000;

/** The whole output of one listing: about 300 bytes for each property of each dataset. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 4096;

export interface ZfsCommandOptions {
  readonly runner: CommandRunner;
  readonly clock: Clock;
  /** For every invocation that names none of its own. */
  readonly deadlineMs: number;
  /** A file that commands which may mount are locked by; absent if mounts do not disturb one another. */
  readonly mountLockPath?: string;
}

/** Everything that the storage runs goes through here: an argv without a shell, a deadline, a sorted outcome. */
export class ZfsCommand {
  readonly #options: ZfsCommandOptions;

  constructor(options: ZfsCommandOptions) {
    this.#options = options;
  }

  /** Runs once; only a missing program and the caller's own signal throw. */
  async attempt(invocation: Invocation, signal: AbortSignal): Promise<Outcome> {
    throwIfAborted(signal);
    const spec: RunSpec = {
      ...this.#commandOf(invocation),
      maxOutputBytes: MAX_OUTPUT_BYTES,
      ...(invocation.outputPath === undefined ? {} : { outputPath: invocation.outputPath }),
    };
    const running = this.#options.runner.run(spec, { signal });
    try {
      const result = await this.#answerOrGiveUp(running, spec.deadlineMs, signal);
      if (result === "given-up") {
        throwIfAborted(signal);
        const cause = new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${invocation.program} cannot be ended`);
        return { kind: "unknown", cause, lingering: running.catch(() => undefined) };
      }
      if (result.droppedBytes > 0) {
        throw new SandboxError("STORAGE_UNAVAILABLE", `${invocation.program} wrote more than can be read`);
      }
      if (result.exitCode === 0) return { kind: "done", stdout: result.stdout };
      if (spec.command === "flock" && result.exitCode === NO_TURN_EXIT_CODE)
        return { kind: "refused", failure: "busy", stderr: "others are mounting" };
      return { kind: "refused", failure: classifyFailure(result.stderr), stderr: result.stderr };
    } catch (thrown) {
      throwIfAborted(signal);
      if (hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN")) return { kind: "unknown", cause: thrown };
      throw thrown;
    }
  }

  /**
   * Runs a command that changes nothing, for the size of its output up to a limit. Past that its output is closed, at which
   * it ends by itself.
   */
  async readBounded(invocation: Invocation, limitBytes: number, signal: AbortSignal): Promise<BoundedRead> {
    throwIfAborted(signal);
    const spec = this.#commandOf(invocation);
    const { stdin, stdout, stderr, exit } = await this.#options.runner.start(spec, { signal });
    stdin.end();
    const refusal = collectText(stderr, MAX_REFUSAL_BYTES);
    const ended = outcomeOf(invocation.program, { exit, refusal });
    const reading = Promise.all([ended, countBytes(stdout, limitBytes)]);
    const answer = await this.#answerOrGiveUp(reading, spec.deadlineMs, signal);
    throwIfAborted(signal);
    if (answer === "given-up") {
      const cause = new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${invocation.program} cannot be ended`);
      return { kind: "unknown", cause, lingering: reading.catch(() => undefined) };
    }
    const [outcome, bytes] = answer;
    if (bytes > limitBytes) return { kind: "more" };
    return outcome.kind === "done" ? { kind: "whole", bytes } : outcome;
  }

  /**
   * Starts a command on a stream. The signal is that of the start alone: a killed `zfs receive` leaves its daemon reading, so
   * the owner ends the stream first.
   */
  async startStreaming(
    invocation: Omit<Invocation, "deadlineMs" | "outputPath">,
    { stdio, signal }: { readonly stdio: NonNullable<CommandSpec["stdio"]>; readonly signal: AbortSignal },
  ): Promise<StreamingCommand> {
    throwIfAborted(signal);
    const spec = { ...this.#commandOf(invocation), deadlineMs: Number.MAX_SAFE_INTEGER, stdio };
    const { stdin, stdout, stderr, exit, kill } = await this.#options.runner.start(spec);
    stdin.on("error", () => undefined);
    const refusal = collectText(stderr, MAX_REFUSAL_BYTES);
    return {
      stdin,
      stdout,
      outcome: outcomeOf(invocation.program, { exit, refusal }),
      kill: () => {
        kill();
      },
    };
  }

  /** Runs a command that changes nothing and returns its output. */
  async read(doing: string, invocation: Invocation, signal: AbortSignal): Promise<string> {
    const outcome = await this.attempt(invocation, signal);
    if (outcome.kind === "done") return outcome.stdout;
    throw outcome.kind === "refused" ? storageError(doing, outcome) : noAnswer(doing, outcome.cause);
  }

  /** Makes a change. If the outcome is unknown, looks and tries once more; returns a refusal for the caller to judge. */
  async change(wanted: Change, signal: AbortSignal): Promise<Exclude<Outcome, { kind: "unknown" }>> {
    for (let triesLeft = 2; ; triesLeft -= 1) {
      const outcome = await this.attempt(wanted, signal);
      if (outcome.kind !== "unknown") return outcome;
      if (await wanted.isDone(signal)) return { kind: "done", stdout: "" };
      if (triesLeft === 1) throw noAnswer(wanted.doing, outcome.cause);
      await this.#options.clock.sleep(50, { signal });
    }
  }

  #commandOf(invocation: Invocation): CommandSpec {
    const { deadlineMs, mountLockPath } = this.#options;
    const lockPath = mayMount(invocation) ? mountLockPath : undefined;
    const [command, args] =
      lockPath === undefined ? [invocation.program, invocation.args] : inMountTurn(invocation, lockPath);
    return {
      command,
      args,
      // Messages are sorted by their English text, times are read as numbers.
      env: { LC_ALL: "C", TZ: "UTC" },
      cwd: "/",
      deadlineMs: (invocation.deadlineMs ?? deadlineMs) + (lockPath === undefined ? 0 : MOUNT_LOCK_WAIT_MS),
    };
  }

  /** The runner kills a child at its deadline and at the signal, but waits for its death, which may not come. */
  async #answerOrGiveUp<T>(running: Promise<T>, limitMs: number, signal: AbortSignal): Promise<T | "given-up"> {
    const { clock } = this.#options;
    const wake = new AbortController();
    const settled = new AbortController();
    const onAbort = (): void => {
      wake.abort();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    const giveUp = async (): Promise<"given-up"> => {
      await clock.sleep(limitMs, { signal: wake.signal }).catch(() => undefined);
      await clock.sleep(REAP_GRACE_MS, { signal: settled.signal }).catch(() => undefined);
      return "given-up";
    };
    try {
      return await Promise.race([running, giveUp()]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      settled.abort();
      wake.abort();
    }
  }
}

async function outcomeOf(
  program: string,
  { exit, refusal }: { readonly exit: Promise<CommandExit>; readonly refusal: Promise<string> },
): Promise<Outcome> {
  const [end, stderr] = await Promise.all([exit, refusal]);
  if (end.kind === "signaled") {
    const cause = new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${program} was ended by ${end.signal}`);
    return { kind: "unknown", cause };
  }
  return end.exitCode === 0
    ? { kind: "done", stdout: "" }
    : { kind: "refused", failure: classifyFailure(stderr), stderr };
}

function noAnswer(doing: string, cause: SandboxError): SandboxError {
  return new SandboxError("STORAGE_UNAVAILABLE", `${doing} was not answered: ${cause.message}`, {
    cause,
    admitted: "unknown",
  });
}

/** The caller's signal as the error that reaches the caller. */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw SandboxError.from(signal.reason);
}

/** The bytes of a stream, which is closed at the first one past the limit. Settles when it is closed. */
async function countBytes(stream: Readable, limit: number): Promise<number> {
  let bytes = 0;
  await readAll(stream, (chunk) => {
    bytes += chunk.length;
    if (bytes > limit) stream.destroy();
  });
  return bytes;
}

/** The beginning of a stream that is read to its end. */
async function collectText(stream: Readable, limit: number): Promise<string> {
  let text = "";
  await readAll(stream, (chunk) => {
    if (text.length < limit) text += chunk.toString("utf8").slice(0, limit - text.length);
  });
  return text;
}

async function readAll(stream: Readable, onData: (chunk: Buffer) => void): Promise<void> {
  stream.on("data", onData);
  // A pipe that breaks ends like one that is closed.
  stream.on("error", () => undefined);
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
}
