import type { Clock } from "@turnbox/core";
import type { SizedChange } from "./compare-in-child.ts";

/** What a request was answered with, as long as pages of it may be asked for. */
export interface Answer {
  readonly id: string;
  /** The request, so that no other one gets this answer. */
  readonly question: string;
  readonly changes: readonly SizedChange[];
}

/** The last answers, each for a minute since it was last used. */
export interface Answers {
  keep(answer: Answer): void;
  find(id: string, question: string): Answer | null;
}

const KEEP_MS = 60_000;
const MAX_ANSWERS = 16;
const MAX_BYTES = 64 * 1024 * 1024;

/** The latest answer is kept whatever its size: it is in memory in any case. */
export function createAnswers(clock: Clock): Answers {
  // In the order of their last use.
  const kept = new Map<string, { readonly answer: Answer; readonly bytes: number; readonly usedMs: number }>();

  const shrink = (): void => {
    let bytes = [...kept.values()].reduce((sum, one) => sum + one.bytes, 0);
    for (const [id, one] of kept) {
      const isLast = kept.size === 1;
      const isOld = one.usedMs + KEEP_MS <= clock.monotonicMs();
      if (!isOld && (isLast || (kept.size <= MAX_ANSWERS && bytes <= MAX_BYTES))) return;
      kept.delete(id);
      bytes -= one.bytes;
    }
  };
  const use = (answer: Answer, bytes: number): void => {
    kept.delete(answer.id);
    kept.set(answer.id, { answer, bytes, usedMs: clock.monotonicMs() });
    shrink();
  };

  return {
    keep: (answer) => {
      use(
        answer,
        answer.changes.reduce((sum, change) => sum + change.bytes, 0),
      );
    },
    find: (id, question) => {
      shrink();
      const found = kept.get(id);
      if (found?.answer.question !== question) return null;
      use(found.answer, found.bytes);
      return found.answer;
    },
  };
}
