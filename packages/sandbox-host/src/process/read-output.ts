import { type Clock, invalidArgument } from "@turnbox/core";
import type { Follower, LaunchedProcess } from "./launched-process.ts";

/** A piece of output. */
export interface OutputPiece {
  readonly data: Uint8Array;
  readonly offset: number;
  /** Bytes right before these that are gone. */
  readonly droppedBytes: number;
  /** `yes` in the last piece of a process that has ended. */
  readonly last: "yes" | "no";
}

export interface OutputRequest {
  readonly offset: number;
  /** `wait`: until the process has ended. */
  readonly atEnd: "stop" | "wait";
  readonly signal: AbortSignal;
}

const MAX_BYTES = 1024 * 1024;
const POLL_MS = 20;

/**
 * Reads a journal from an offset on. Between two pieces nothing is held open, so a reader that never comes back for the
 * next one holds nothing; one that follows is waited for when old output has to go, until its signal aborts.
 */
export async function* readOutput(
  process: LaunchedProcess,
  { offset, atEnd, signal }: OutputRequest,
  clock: Clock,
): AsyncGenerator<OutputPiece> {
  const { end } = await process.journal.extent();
  if (offset > end) throw invalidArgument("offset", `must be at most ${end}, what was written`);
  const follower: Follower = { position: offset };
  const leave = (): void => void process.followers.delete(follower);
  if (atEnd === "wait") process.followers.add(follower);
  signal.addEventListener("abort", leave, { once: true });
  try {
    while (!signal.aborted) {
      // Looked at first: what was written before the end is read then.
      const hasEnded = process.row.end !== null;
      const { data, offset: at } = await process.journal.read(follower.position, MAX_BYTES);
      const droppedBytes = at - follower.position;
      follower.position = at + data.length;
      if (data.length > 0) yield { data, offset: at, droppedBytes, last: "no" };
      else if (hasEnded) {
        yield { data, offset: at, droppedBytes, last: "yes" };
        return;
      } else if (atEnd === "stop") return;
      else await clock.sleep(POLL_MS, { signal }).catch(() => undefined);
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
