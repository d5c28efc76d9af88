import { type Clock, SandboxError, setAlarm } from "@turnbox/core";
import type { JobRun, Piece } from "./job-run.ts";

/** How long the other side of a stream may do nothing before the worker is taken from it. */
export const STALL_MS = 60_000;
const RETRY_AFTER_MS = 100;

/**
 * The pieces of a run, for a reader that takes the next one within a minute. If it does not, the run ends at once and the
 * next piece fails with `STREAM_STALLED`.
 */
export async function* askedInTime(run: JobRun<unknown>, clock: Clock): AsyncGenerator<Piece> {
  const reader = { isStalled: false };
  for (let piece = await run.next(); piece !== null; piece = await run.next()) {
    const turnOff = setAlarm(clock, STALL_MS, () => {
      reader.isStalled = true;
      run[Symbol.dispose]();
    });
    try {
      yield piece;
    } finally {
      turnOff();
    }
    if (reader.isStalled) throw stalled("the reader took nothing");
  }
}

/** The pieces of a body whose sender sends the next one within a minute; fails with `STREAM_STALLED` if it does not. */
export async function* sentInTime(body: AsyncIterable<Uint8Array>, clock: Clock): AsyncGenerator<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  for (;;) {
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => undefined);
    const turnOff = setAlarm(clock, STALL_MS, () => {
      late.reject(stalled("the sender sent nothing"));
    });
    const next = await Promise.race([pieces.next(), late.promise]).finally(turnOff);
    if (next.done === true) return;
    yield next.value;
  }
}

function stalled(what: string): SandboxError {
  return new SandboxError("STREAM_STALLED", `${what} for ${STALL_MS / 1000} s`, { retryAfterMs: RETRY_AFTER_MS });
}
