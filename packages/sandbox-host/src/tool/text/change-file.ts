import type { Stats } from "node:fs";
import { statsIn } from "../../file/entry.ts";
import type { Walk } from "../../file/walk.ts";
import { makeParents, writeWhole } from "../../file/write-whole.ts";
import { explainMismatch, lineOf } from "./mismatch.ts";
import { bytesOf, counted, done, refused, type TextOutcome } from "./outcome.ts";
import { readWhole } from "./read-bytes.ts";
import { shownPath } from "./shown-path.ts";

export interface EditFileRequest {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  readonly replace: "one" | "all";
}

const MAX_EDIT_BYTES = 10 * 1024 * 1024;
const MAX_LINES_NAMED = 20;

export interface WriteFileRequest {
  readonly path: string;
  readonly content: string;
  readonly parents: "create" | "require";
}

/** Creates a file, or replaces all of it. */
export function writeFile(walk: Walk, { path, content, parents }: WriteFileRequest): TextOutcome {
  if (parents === "create") makeParents(walk, path);
  using target = walk.find(path);
  const wasThere = statsIn(target.directory, target.name) !== null;
  const { sizeBytes } = writeWhole(target, [Buffer.from(content, "utf8")]);
  return done(`${wasThere ? "Replaced" : "Created"} ${shownPath(target.path)} (${bytesOf(sizeBytes)}).`);
}

/** Replaces an exact text. It works on bytes, so that everything else of the file stays as it is. */
export function editFile(walk: Walk, request: EditFileRequest): TextOutcome {
  if (request.oldText === request.newText)
    return refused("old_string and new_string are the same: there is nothing to change.");
  const { bytes, name, stats } = readAll(walk, request.path);
  const sought = Buffer.from(request.oldText, "utf8");
  const offsets = offsetsOf(bytes, sought);
  if (offsets.length === 0) return refused(explainMismatch(bytes, { sought: request.oldText, name }));
  const lines = linesNamed(bytes, offsets);
  if (offsets.length > 1 && request.replace === "one") {
    return refused(
      `old_string is found ${offsets.length} times in ${name}, at ${lines}. Add lines around it until it is unique, or set replace_all.`,
    );
  }
  using target = walk.find(request.path);
  if (!isSame(stats, statsIn(target.directory, target.name)))
    return refused(`${name} was changed by another program in the same moment. Read it again, then edit it.`);
  writeWhole(target, splice(bytes, offsets, { sought, put: Buffer.from(request.newText, "utf8") }));
  return done(`Replaced ${counted(offsets.length, "occurrence")} in ${name}, at ${lines}.`);
}

function readAll(walk: Walk, path: string): { readonly bytes: Buffer; readonly name: string; readonly stats: Stats } {
  const file = walk.open(path);
  return { bytes: readWhole(file, MAX_EDIT_BYTES), name: shownPath(file.path), stats: file.stats };
}

/** Whether a file is unchanged, as far as its attributes show. */
function isSame(before: Stats, now: Stats | null): boolean {
  return now !== null && (["ino", "size", "mtimeMs", "ctimeMs"] as const).every((name) => before[name] === now[name]);
}

function offsetsOf(bytes: Buffer, sought: Buffer): readonly number[] {
  const offsets: number[] = [];
  for (let at = bytes.indexOf(sought); at >= 0; at = bytes.indexOf(sought, at + sought.length)) offsets.push(at);
  return offsets;
}

function linesNamed(bytes: Buffer, offsets: readonly number[]): string {
  let line = 1;
  let from = 0;
  const lines = offsets.slice(0, MAX_LINES_NAMED).map((offset) => {
    line += lineOf(bytes.subarray(from), offset - from) - 1;
    from = offset;
    return String(line);
  });
  const more = offsets.length - lines.length;
  return `${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")}${more > 0 ? ` and ${more} more places` : ""}`;
}

function splice(
  bytes: Buffer,
  offsets: readonly number[],
  { sought, put }: { readonly sought: Buffer; readonly put: Buffer },
): readonly Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (const offset of offsets) {
    parts.push(bytes.subarray(from, offset), put);
    from = offset + sought.length;
  }
  return [...parts, bytes.subarray(from)];
}
