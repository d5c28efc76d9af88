import { raceSignal } from "@turnbox/core";
import { createChannel } from "./channel.ts";

/**
 * What `run` emits, as it is read: it begins with the first look, waits for its reader, and is aborted and waited for when the
 * reader leaves.
 */
export function pull<T>(
  run: (emit: (value: T) => Promise<void>, call: { readonly signal: AbortSignal }) => Promise<void>,
  outer: AbortSignal | undefined,
): AsyncIterable<T> {
  return {
    async *[Symbol.asyncIterator]() {
      const leaving = new AbortController();
      const signal = outer === undefined ? leaving.signal : AbortSignal.any([outer, leaving.signal]);
      const channel = createChannel<T>(() => Promise.resolve());
      const ending = run((value) => raceSignal(channel.send(value), signal), { signal }).then(
        () => {
          channel.end();
        },
        (error: unknown) => {
          channel.end({ error });
        },
      );
      try {
        yield* channel;
      } finally {
        leaving.abort();
        await ending;
      }
    },
  };
}
