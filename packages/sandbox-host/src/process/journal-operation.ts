import { mkdir, rm } from "node:fs/promises";
import type { OperationContext } from "../file/operation.ts";
import { DirectoryJournal, type JournalPiece } from "./journal.ts";

export type JournalWork =
  | { readonly kind: "make" }
  | { readonly kind: "look" }
  | { readonly kind: "read"; readonly offset: number; readonly maxBytes: number }
  | { readonly kind: "rotate"; readonly keepBytes: number }
  | { readonly kind: "remove" };

/** How a journal is after some work on it. */
export interface JournalState {
  readonly start: number;
  readonly end: number;
  readonly liveBytes: number;
  readonly keptBytes: number;
}

export interface JournalResult {
  readonly state: JournalState;
  /** What was read; empty for other work. */
  readonly piece: JournalPiece;
}

const EMPTY: JournalState = { start: 0, end: 0, liveBytes: 0, keptBytes: 0 };
const NOTHING: JournalPiece = { data: Buffer.alloc(0), offset: 0 };

/**
 * Does one piece of work on the journal in a directory. All of its state is there, so a rotation that an earlier attempt did
 * not end is ended first.
 */
export async function workOnJournal(directory: string, work: JournalWork): Promise<JournalResult> {
  if (work.kind === "make" || work.kind === "remove") {
    await rm(directory, { recursive: true, force: true });
    if (work.kind === "make") await mkdir(directory, { mode: 0o700 });
    return { state: EMPTY, piece: NOTHING };
  }
  const journal = new DirectoryJournal(directory);
  await journal.recover();
  if (work.kind === "rotate") await journal.rotate(work.keepBytes);
  const piece = work.kind === "read" ? await journal.read(work.offset, work.maxBytes) : NOTHING;
  const liveBytes = await journal.liveBytes();
  return { state: { ...(await journal.extent()), liveBytes, keptBytes: journal.keptBytes }, piece };
}

/** The same for a file worker, on the directory `name` below its root. What was read is sent as one piece with its offset. */
export async function journalOperation(
  { walk, send }: OperationContext,
  { name, work }: { readonly name: string; readonly work: JournalWork },
): Promise<JournalState> {
  using root = walk.directory("/");
  const { state, piece } = await workOnJournal(`${root.self.toString("utf8")}/${name}`, work);
  if (work.kind === "read") send(piece.data, piece.offset);
  return state;
}
