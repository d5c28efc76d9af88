import { type Call, namingAborts, raceSignal, SandboxError } from "@turnbox/core";

/** How long a look may take. No single caller ends it, because many may wait for it. */
const LOOK_MS = 30_000;

interface Looks<Answer> {
  readonly now: Promise<Answer>;
  next: Promise<Answer> | undefined;
}

/**
 * Looks at something that many callers ask for at the same time, by key. There is one look at a time for a key; all callers that
 * come meanwhile share the next one. So no result is older than its call, and a thousand calls are two looks.
 */
export class SharedLooks<Answer> {
  readonly #look: (key: string, call: Call) => Promise<Answer>;
  readonly #looks = new Map<string, Looks<Answer>>();

  constructor(look: (key: string, call: Call) => Promise<Answer>) {
    this.#look = look;
  }

  async ask(key: string, { signal }: Call): Promise<Answer> {
    if (signal.aborted) throw SandboxError.from(signal.reason);
    const running = this.#looks.get(key);
    if (running === undefined) return await namingAborts(raceSignal(this.#begin(key), signal));
    running.next ??= running.now.then(
      () => this.#begin(key),
      () => this.#begin(key),
    );
    return await namingAborts(raceSignal(running.next, signal));
  }

  #begin(key: string): Promise<Answer> {
    const now = this.#look(key, { signal: AbortSignal.timeout(LOOK_MS) });
    const looks: Looks<Answer> = { now, next: undefined };
    this.#looks.set(key, looks);
    const forget = (): void => {
      if (looks.next === undefined && this.#looks.get(key) === looks) this.#looks.delete(key);
    };
    now.then(forget, forget);
    return now;
  }
}
