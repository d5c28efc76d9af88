import type { Clock } from "@turnbox/core";
import type { SizedChange } from "./compare-in-child.ts";

/** The result of a request, as long as further pages of it may be asked for. */
export interface Answer {
  readonly id: string;
  /** The request, so that no other one gets this answer. */
  readonly question: string;
  readonly changes: readonly SizedChange[];
}

interface Kept {
  readonly answer: Answer;
  readonly bytes: number;
  readonly usedMs: number;
}

const KEEP_MS = 60_000;
const MAX_ANSWERS = 16;
const MAX_BYTES = 64 * 1024 * 1024;

/** The last answers, each for a minute since it was last used. The latest is kept whatever its size. */
export class Answers {
  readonly #clock: Clock;
  /** In the order of their last use. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keep(answer: Answer): void {
    this.#use(
      answer,
      answer.changes.reduce((sum, change) => sum + change.bytes, 0),
    );
  }

  find(id: string, question: string): Answer | null {
    this.#shrink();
    const found = this.#kept.get(id);
    if (found?.answer.question !== question) return null;
    this.#use(found.answer, found.bytes);
    return found.answer;
  }

  #use(answer: Answer, bytes: number): void {
    this.#kept.delete(answer.id);
    this.#kept.set(answer.id, { answer, bytes, usedMs: this.#clock.monotonicMs() });
    this.#shrink();
  }

  #shrink(): void {
    let bytes = [...this.#kept.values()].reduce((sum, one) => sum + one.bytes, 0);
    for (const [id, one] of this.#kept) {
      const isLast = this.#kept.size === 1;
      const isOld = one.usedMs + KEEP_MS <= this.#clock.monotonicMs();
      if (!isOld && (isLast || (this.#kept.size <= MAX_ANSWERS && bytes <= MAX_BYTES))) return;
      this.#kept.delete(id);
      bytes -= one.bytes;
    }
  }
}
