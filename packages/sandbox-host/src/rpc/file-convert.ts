import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type FileEntry, FileEntrySchema, FileEventKind, FileType } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { Entry } from "../file/entry.ts";
import type { WatchEvent } from "../file/watch/watched-tree.ts";

const TYPES = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  symlink: FileType.SYMLINK,
  other: FileType.OTHER,
} as const satisfies Record<Entry["type"], FileType>;

export const EVENT_KINDS = {
  created: FileEventKind.CREATED,
  modified: FileEventKind.MODIFIED,
  removed: FileEventKind.REMOVED,
  renamed: FileEventKind.RENAMED,
  overflow: FileEventKind.OVERFLOW,
  started: FileEventKind.STARTED,
} as const satisfies Record<WatchEvent["kind"], FileEventKind>;

export function toWireEntry(entry: Entry): FileEntry {
  return create(FileEntrySchema, {
    name: entry.name,
    path: entry.path,
    type: TYPES[entry.type],
    sizeBytes: BigInt(entry.sizeBytes),
    mode: entry.mode,
    uid: entry.uid,
    gid: entry.gid,
    modifiedAt: timestampFromMs(entry.modifiedMs),
    linkTarget: entry.linkTarget,
  });
}
