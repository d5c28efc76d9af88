import { basename } from "node:path";
import { type Clock, systemClock } from "../clock/clock.ts";
import { createDeadline } from "../clock/deadline.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandResult, CommandRunner, RunSpec } from "./command-runner.ts";

/** How many of one program run at once, by its name; one that is not named is without a bound. */
export type CommandBounds = Readonly<Record<string, number>>;

/**
 * A runner that lets only so many of a kind of program run to their end at the same time. Others wait, in their order, and the
 * wait counts for their deadline; one whose deadline passes before it was begun fails with `OVERLOADED`. What is started and
 * not waited for (`start`) is its owner's to bound.
 */
export function createBoundedCommandRunner(
  inner: CommandRunner,
  { bounds, clock = systemClock }: { readonly bounds: CommandBounds; readonly clock?: Clock },
): CommandRunner {
  const kinds = new Map(Object.entries(bounds).map(([name, bound]) => [name, new Kind(name, bound, clock)]));
  return {
    start: (spec, options) => inner.start(spec, options),
    run: (spec, options) => {
      const kind = kinds.get(basename(spec.command));
      return kind === undefined ? inner.run(spec, options) : kind.run(inner, spec, options);
    },
  };
}

class Kind {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(name: string, bound: number, clock: Clock) {
    this.#name = name;
    this.#free = bound;
    this.#clock = clock;
  }

  async run(
    inner: CommandRunner,
    spec: RunSpec,
    options: { readonly signal?: AbortSignal } | undefined,
  ): Promise<CommandResult> {
    const deadlineMs = this.#free > 0 ? spec.deadlineMs : await this.#leftAfterWaiting(spec, options?.signal);
    this.#free -= 1;
    try {
      return await inner.run(deadlineMs === spec.deadlineMs ? spec : { ...spec, deadlineMs }, options);
    } finally {
      this.#free += 1;
      const [next] = this.#waiting;
      next?.();
    }
  }

  /** Waits until one may be begun; returns how long it may take then. */
  async #leftAfterWaiting(spec: RunSpec, signal: AbortSignal | undefined): Promise<number> {
    const begunMs = this.#clock.monotonicMs();
    using deadline = createDeadline({ clock: this.#clock, ms: spec.deadlineMs, ...(signal && { signal }) });
    while (this.#free <= 0) await this.#turn(deadline.signal, signal);
    return Math.max(1, spec.deadlineMs - (this.#clock.monotonicMs() - begunMs));
  }

  async #turn(over: AbortSignal, caller: AbortSignal | undefined): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const go = (): void => {
      this.#waiting.delete(go);
      turn.resolve();
    };
    const onAbort = (): void => {
      turn.reject(
        caller?.aborted === true
          ? SandboxError.from(caller.reason)
          : new SandboxError("OVERLOADED", `too many ${this.#name} commands run`, { admitted: "no" }),
      );
    };
    this.#waiting.add(go);
    over.addEventListener("abort", onAbort, { once: true });
    if (over.aborted) onAbort();
    try {
      await turn.promise;
    } finally {
      this.#waiting.delete(go);
      over.removeEventListener("abort", onAbort);
    }
  }
}
