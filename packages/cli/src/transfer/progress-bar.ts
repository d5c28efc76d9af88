import type { Clock } from "@turnbox/core";
import { formatSize } from "../format/size.ts";
import type { OutputStream } from "../surroundings.ts";

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/** Shows on one line how far a transfer is. Disposing of it clears the line. */
export interface ProgressBar extends Disposable {
  /** The size of the whole, if it is known. */
  expect(totalBytes: number): void;
  add(bytes: number): void;
}

export interface ProgressBarOptions {
  readonly stream: OutputStream;
  readonly clock: Clock;
  /** Nothing is drawn if the stream is no terminal. */
  readonly show: "on terminals" | "never";
}

export function createProgressBar({ stream, clock, show }: ProgressBarOptions): ProgressBar {
  const isShown = show === "on terminals" && stream.isTTY === true;
  const startMs = clock.monotonicMs();
  let totalBytes: number | undefined;
  let doneBytes = 0;
  let drawnMs: number | undefined;
  // What is longer than the line would go on in the next one, which is not cleared.
  const cut = (text: string): string => text.slice(0, Math.max(0, (stream.columns ?? Infinity) - 1));
  const draw = (text: string): void => void stream.write(`\r${cut(text)}\u001b[K`, () => undefined);
  return {
    expect: (bytes) => {
      totalBytes = bytes;
    },
    add: (bytes) => {
      doneBytes += bytes;
      const nowMs = clock.monotonicMs();
      if (!isShown || (drawnMs !== undefined && nowMs - drawnMs < REDRAW_MS)) return;
      drawnMs = nowMs;
      draw(formatProgress({ doneBytes, totalBytes, elapsedMs: nowMs - startMs }));
    },
    [Symbol.dispose]: () => {
      if (drawnMs !== undefined) draw("");
    },
  };
}

interface Progress {
  readonly doneBytes: number;
  /** Undefined if it is not known beforehand. */
  readonly totalBytes: number | undefined;
  readonly elapsedMs: number;
}

export function formatProgress({ doneBytes, totalBytes, elapsedMs }: Progress): string {
  const rate = elapsedMs > 0 ? `  ${formatSize(Math.round((doneBytes * 1000) / elapsedMs))}/s` : "";
  if (totalBytes === undefined || totalBytes === 0) return `${formatSize(doneBytes)}${rate}`;
  const part = Math.min(1, doneBytes / totalBytes);
  const full = Math.floor(part * BAR_WIDTH);
  const bar = `[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}]`;
  const percent = `${String(Math.floor(part * 100)).padStart(3)}%`;
  return `${bar} ${percent}  ${formatSize(doneBytes)} of ${formatSize(totalBytes)}${rate}`;
}
