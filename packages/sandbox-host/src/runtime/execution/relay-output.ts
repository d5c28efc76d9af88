import { PassThrough, type Readable } from "node:stream";
import type { Clock } from "@turnbox/core";

const HIGH_WATER_BYTES = 64 * 1024;
/** After this long without a byte, a pipe whose writer has ended is empty, and open only in the hands of others. */
const QUIET_MS = 50;
/** More than any pipe holds: whatever comes after so much was written by others. */
const MAX_PIPE_BYTES = 1024 * 1024;

/** Passes one output of a process on to its reader, holding little of it. */
export interface OutputRelay {
  readonly output: Readable;
  /** Settles when the reader has had all of it, or has gone away. */
  readonly consumed: Promise<void>;
  /** Takes no more from the process until `drain`: one that is being ended waits, and costs nothing meanwhile. */
  hold(this: void): void;
  /** Called when the process has ended: passes on what it wrote before, at the reader's pace, then ends the output. */
  drain(limit: AbortSignal): Promise<void>;
}

export interface RelayOptions {
  readonly clock: Clock;
  onLinger(this: void, source: Readable): void;
}

/**
 * Relays `source`. Once the output has ended or its reader is gone, whatever still comes is read and dropped, so that
 * background processes do not die of a broken pipe; `onLinger` gets a source that other processes still hold.
 */
export function relayOutput(source: Readable, { clock, onLinger }: RelayOptions): OutputRelay {
  const output = new PassThrough({ readableHighWaterMark: HIGH_WATER_BYTES, writableHighWaterMark: HIGH_WATER_BYTES });
  let state: "relaying" | "held" | "finished" = "relaying";
  let relayedBytes = 0;
  let activity = 0;

  const finish = (): void => {
    if (state === "finished") return;
    state = "finished";
    output.end();
    if (source.closed || source.readableEnded) return;
    source.resume();
    onLinger(source);
  };
  source.on("data", (chunk: Buffer) => {
    if (state === "finished") return;
    activity += 1;
    relayedBytes += chunk.length;
    if (!output.write(chunk)) source.pause();
  });
  output.on("drain", () => {
    activity += 1;
    if (state !== "held") source.resume();
  });
  source.once("end", finish);
  source.once("close", finish);
  source.on("error", finish);
  output.on("error", () => undefined);
  const consumed = new Promise<void>((resolve) => {
    output.once("end", resolve);
    output.once("close", resolve);
  });
  output.once("close", finish);

  const hold = (): void => {
    if (state !== "relaying") return;
    state = "held";
    source.pause();
  };
  const release = (): void => {
    if (state !== "held") return;
    state = "relaying";
    if (!output.writableNeedDrain) source.resume();
  };
  const drain = async (limit: AbortSignal): Promise<void> => {
    release();
    const startBytes = relayedBytes;
    while (state === "relaying" && !limit.aborted && relayedBytes - startBytes <= MAX_PIPE_BYTES) {
      const before = activity;
      await quietSpell(source, clock);
      if (activity === before && !source.isPaused()) break;
    }
    finish();
  };
  return { output, consumed, hold, drain };
}

/** Waits a while, or until the source has closed; then lets what the system has ready for it arrive. */
async function quietSpell(source: Readable, clock: Clock): Promise<void> {
  const closed = new AbortController();
  const onClose = (): void => {
    closed.abort();
  };
  source.once("close", onClose);
  await clock.sleep(QUIET_MS, { signal: closed.signal }).catch(() => undefined);
  source.off("close", onClose);
  await new Promise<void>((resolve) => setImmediate(resolve));
}
