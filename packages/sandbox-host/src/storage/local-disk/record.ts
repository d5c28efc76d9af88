import { open, readdir, readFile, rename, rm } from "node:fs/promises";
import { SandboxError } from "@turnbox/core";
import type { Marks } from "../storage.ts";

/** What is written beside the files of a base or a head. */
export interface TreeRecord {
  readonly createdAtMs: number;
  readonly marks: Marks;
  /** Of a base: the bytes it takes. */
  readonly referencedBytes?: number;
  readonly refquotaBytes?: number;
  /** Of a head: `name@digest` of the base it was copied from. */
  readonly base?: string;
}

/** Writes a new record so that it is on the disk when this returns. Its directory becomes visible by a later rename. */
export async function writeRecord(path: string, record: TreeRecord): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(JSON.stringify(record));
  await file.sync();
}

/** Replaces a record in one step. */
export async function replaceRecord(path: string, record: TreeRecord): Promise<void> {
  const next = `${path}.new`;
  await rm(next, { force: true });
  await writeRecord(next, record);
  await rename(next, path);
}

export async function readRecord(path: string): Promise<TreeRecord | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as TreeRecord;
  } catch (thrown) {
    if (isAbsent(thrown)) return undefined;
    throw new SandboxError("STORAGE_UNAVAILABLE", "a record of the storage cannot be read", { cause: thrown });
  }
}

/** The names in a directory; none if it is not there. */
export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (thrown) {
    if (isAbsent(thrown)) return [];
    throw thrown;
  }
}

function isAbsent(thrown: unknown): boolean {
  return typeof thrown === "object" && thrown !== null && "code" in thrown && thrown.code === "ENOENT";
}
