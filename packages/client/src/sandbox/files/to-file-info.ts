import { SandboxError } from "@turnbox/core";
import { type FileEntry, FileType } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { toNumber } from "../wire/number.ts";
import { toOptional } from "../wire/text.ts";
import { toDateOrEpoch } from "../wire/time.ts";
import type { FileInfo, FileKind } from "./sandbox-files.ts";

const KINDS: ReadonlyMap<FileType, FileKind> = new Map([
  [FileType.FILE, "file"],
  [FileType.DIRECTORY, "directory"],
  [FileType.SYMLINK, "symlink"],
]);

export function toFileInfo(entry: FileEntry | undefined): FileInfo {
  if (entry === undefined) throw new SandboxError("INTERNAL", "the host's answer describes no file");
  return {
    name: entry.name,
    path: entry.path,
    kind: KINDS.get(entry.type) ?? "other",
    sizeBytes: toNumber(entry.sizeBytes),
    mode: entry.mode,
    uid: entry.uid,
    gid: entry.gid,
    modifiedAt: toDateOrEpoch(entry.modifiedAt),
    linkTarget: toOptional(entry.linkTarget),
  };
}
