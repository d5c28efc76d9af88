import type { Clock } from "@turnbox/core";
import type { Head, HeadRef } from "../storage/storage.ts";

/**
 * Heads that were mounted a moment ago, when they were made: the first boot on one need not have the storage look at it
 * again. Each is returned once, so a boot after one that failed asks the storage.
 */
export interface RecentMounts {
  note(head: Head): void;
  /** The directory that the head is mounted at, if it was made so recently that it is known. */
  take(head: HeadRef): string | undefined;
}

/** A daemon that dies in that time is found out by the boot. */
const FRESH_MS = 5000;

export function createRecentMounts(clock: Clock): RecentMounts {
  const made = new Map<string, { readonly path: string; readonly untilMs: number }>();
  const forgetOld = (): void => {
    // In the order of their making.
    for (const [key, { untilMs }] of made) {
      if (clock.monotonicMs() < untilMs) return;
      made.delete(key);
    }
  };
  return {
    note: (head) => {
      forgetOld();
      made.set(keyOf(head), { path: head.path, untilMs: clock.monotonicMs() + FRESH_MS });
    },
    take: (head) => {
      forgetOld();
      const key = keyOf(head);
      const found = made.get(key);
      made.delete(key);
      return found?.path;
    },
  };
}

const keyOf = ({ token, generation }: HeadRef): string => `${token}/${generation}`;
