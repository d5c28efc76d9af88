import { basename } from "node:path";
import {
  type Clock,
  type CommandResult,
  type CommandRunner,
  createDeadline,
  type Permit,
  type RunSpec,
  SandboxError,
  Semaphore,
  systemClock,
} from "@turnbox/core";

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
  readonly #semaphore: Semaphore;

  constructor(name: string, bound: number, clock: Clock) {
    this.#name = name;
    this.#semaphore = new Semaphore(bound);
    this.#clock = clock;
  }

  async run(
    inner: CommandRunner,
    spec: RunSpec,
    options: { readonly signal?: AbortSignal } | undefined,
  ): Promise<CommandResult> {
    const permit = this.#semaphore.tryAcquire();
    if (permit !== undefined) {
      using _permit = permit;
      return await inner.run(spec, options);
    }
    const begunMs = this.#clock.monotonicMs();
    using _awaited = await this.#wait(spec, options?.signal);
    const leftMs = spec.deadlineMs - (this.#clock.monotonicMs() - begunMs);
    return await inner.run({ ...spec, deadlineMs: Math.max(1, leftMs) }, options);
  }

  /** Waits until one more may be begun, as long as the command's deadline and its caller allow. */
  async #wait(spec: RunSpec, signal: AbortSignal | undefined): Promise<Permit> {
    using deadline = createDeadline({ clock: this.#clock, ms: spec.deadlineMs, ...(signal && { signal }) });
    try {
      return await this.#semaphore.acquire(deadline.signal);
    } catch {
      if (signal?.aborted === true) throw SandboxError.from(signal.reason);
      throw new SandboxError("OVERLOADED", `too many ${this.#name} commands run`, { admitted: "no" });
    }
  }
}
