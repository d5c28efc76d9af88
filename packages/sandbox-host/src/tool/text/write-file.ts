import { statsIn } from "../../file/entry.ts";
import type { Walk } from "../../file/walk.ts";
import { makeParents, writeWhole } from "../../file/write-whole.ts";
import { bytesOf, done, type TextOutcome } from "./outcome.ts";
import { shownPlace } from "./place.ts";

export interface WriteFileRequest {
  readonly path: string;
  readonly content: string;
  readonly parents: "create" | "require";
}

export function writeFile(walk: Walk, { path, content, parents }: WriteFileRequest): TextOutcome {
  if (parents === "create") makeParents(walk, path);
  using place = walk.find(path);
  const wasThere = statsIn(place.directory, place.name) !== null;
  const { sizeBytes } = writeWhole(place, [Buffer.from(content, "utf8")]);
  return done(`${wasThere ? "Replaced" : "Created"} ${shownPlace(place.path)} (${bytesOf(sizeBytes)}).`);
}
