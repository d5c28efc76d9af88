import { opendirSync } from "node:fs";
import type { BytePath } from "./path.ts";
import type { Directory } from "./walk.ts";

const NAMES_AT_ONCE = 1024;

/** The names in a directory, in the order of the system. Memory does not grow with their number. */
export function* namesIn(directory: Directory): Generator<BytePath, void, void> {
  // The types have text only, but with this encoding the names are bytes.
  const reader = opendirSync(directory.self, { encoding: "buffer" as BufferEncoding, bufferSize: NAMES_AT_ONCE });
  try {
    for (let next = reader.readSync(); next !== null; next = reader.readSync()) {
      yield (next.name as unknown as Buffer).toString("latin1");
    }
  } finally {
    reader.closeSync();
  }
}
