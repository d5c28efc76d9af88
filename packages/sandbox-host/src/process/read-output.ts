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
/** A journal that stays silent is read less and less often, but for that of a terminal, which is interactive. */
const LONGEST_POLL_MS = 160;
/** A silent journal yields a piece without bytes this often, which shows that the stream lives. */
const KEEPALIVE_MS = 15_000;

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
    const pace = createPace(process, clock);
    while (!signal.aborted) {
      const piece = await nextPiece(process, follower, signal);
      if (piece === null) return;
      if (isNews(piece) || pace.isSilent()) {
        yield piece;
        pace.noteYield();
      }
      if (piece.last === "yes" || (atEnd === "stop" && piece.data.length === 0)) return;
      if (piece.data.length === 0) await clock.sleep(pace.nextPauseMs(), { signal }).catch(() => undefined);
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function isNews({ data, droppedBytes, last }: OutputPiece): boolean {
  return data.length > 0 || droppedBytes > 0 || last === "yes";
}

/** Null if the journal is removed with its session, which ends its readers. */
async function nextPiece(
  process: LaunchedProcess,
  follower: Follower,
  signal: AbortSignal,
): Promise<OutputPiece | null> {
  // Checked first, so that what was written before the end is read.
  const hasEnded = process.row.end !== null;
  const read = await process.journal.read(follower.position, MAX_BYTES).catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown;
  });
  if (read === undefined) return null;
  const { data, offset } = read;
  const droppedBytes = offset - follower.position;
  follower.position = offset + data.length;
  return { data, offset, droppedBytes, last: hasEnded && data.length === 0 ? "yes" : "no" };
}

/** How often a journal is read, and a silent one yields a piece. */
function createPace(process: LaunchedProcess, clock: Clock) {
  const longestMs = process.row.terminal === null ? LONGEST_POLL_MS : POLL_MS;
  let pauseMs = POLL_MS / 2;
  let yieldedMs = clock.monotonicMs();
  return {
    isSilent: (): boolean => clock.monotonicMs() - yieldedMs >= KEEPALIVE_MS,
    noteYield: (): void => {
      yieldedMs = clock.monotonicMs();
      pauseMs = POLL_MS / 2;
    },
    nextPauseMs: (): number => (pauseMs = Math.min(2 * pauseMs, longestMs)),
  };
}
