import type { Stats } from "node:fs";
import { statsIn } from "../../file/entry.ts";
import type { Walk } from "../../file/walk.ts";
import { writeWhole } from "../../file/write-whole.ts";
import { explainMismatch, lineOf } from "./mismatch.ts";
import { counted, done, refused, type TextOutcome } from "./outcome.ts";
import { shownPlace } from "./place.ts";
import { readWhole } from "./read-bytes.ts";

export interface EditFileRequest {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
  readonly replace: "one" | "all";
}

const MAX_EDIT_BYTES = 10 * 1024 * 1024;
const MAX_LINES_NAMED = 20;

/** Replaces an exact text. It works on bytes, so that everything else of the file stays as it is. */
export function editFile(walk: Walk, request: EditFileRequest): TextOutcome {
  if (request.oldText === request.newText)
    return refused("old_string and new_string are the same: there is nothing to change.");
  const { bytes, name, stats } = readAll(walk, request.path);
  const sought = Buffer.from(request.oldText, "utf8");
  const places = placesOf(bytes, sought);
  if (places.length === 0) return refused(explainMismatch(bytes, { sought: request.oldText, name }));
  const lines = linesNamed(bytes, places);
  if (places.length > 1 && request.replace === "one") {
    return refused(
      `old_string is found ${places.length} times in ${name}, at ${lines}. Add lines around it until it is unique, or set replace_all.`,
    );
  }
  using place = walk.find(request.path);
  if (!isSame(stats, statsIn(place.directory, place.name)))
    return refused(`${name} was changed by somebody else in the same moment. Read it again, then edit it.`);
  writeWhole(place, splice(bytes, places, { sought, put: Buffer.from(request.newText, "utf8") }));
  return done(`Replaced ${counted(places.length, "occurrence")} in ${name}, at ${lines}.`);
}

function readAll(walk: Walk, path: string): { readonly bytes: Buffer; readonly name: string; readonly stats: Stats } {
  const file = walk.open(path);
  return { bytes: readWhole(file, MAX_EDIT_BYTES), name: shownPlace(file.path), stats: file.stats };
}

/** Whether a file is as it was, as far as its attributes tell. */
function isSame(before: Stats, now: Stats | null): boolean {
  return now !== null && (["ino", "size", "mtimeMs", "ctimeMs"] as const).every((name) => before[name] === now[name]);
}

function placesOf(bytes: Buffer, sought: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(sought); at >= 0; at = bytes.indexOf(sought, at + sought.length)) places.push(at);
  return places;
}

function linesNamed(bytes: Buffer, places: readonly number[]): string {
  let line = 1;
  let from = 0;
  const lines = places.slice(0, MAX_LINES_NAMED).map((place) => {
    line += lineOf(bytes.subarray(from), place - from) - 1;
    from = place;
    return String(line);
  });
  const more = places.length - lines.length;
  return `${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")}${more > 0 ? ` and ${more} more places` : ""}`;
}

function splice(
  bytes: Buffer,
  places: readonly number[],
  { sought, put }: { readonly sought: Buffer; readonly put: Buffer },
): readonly Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (const place of places) {
    parts.push(bytes.subarray(from, place), put);
    from = place + sought.length;
  }
  return [...parts, bytes.subarray(from)];
}
