// Runs inside the worker thread, under the lock of the store, where it may wait for the file system.
import { closeSync, fsyncSync, lstatSync, mkdirSync, openSync, renameSync, rmdirSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { hasErrno } from "@turnbox/core";
import type { PutCondition } from "../object-store.ts";
import { foldersOf, type Layout, NoFolder, pathOf } from "./layout.ts";
import { NotAnObject, readHeaderSync } from "./object-file.ts";

export interface CommitInput {
  readonly key: string;
  readonly condition: PutCondition;
  /** The complete, synced file that becomes the object. */
  readonly draft: string;
}

/** What crosses from the thread: errors of the system only by their code. */
export type CommitResult =
  | { readonly kind: "done" }
  | { readonly kind: "changed" }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** Makes a draft the object, if the condition holds, so that it is there after a power cut. */
export function commit(layout: Layout, { key, condition, draft }: CommitInput): CommitResult {
  return reporting(() => {
    const path = pathOf(layout, key);
    if (condition.kind !== "any" && !isHeld(condition, etagOf(layout, key))) return { kind: "changed" };
    const made = makeFolders(layout, key);
    renameSync(draft, path);
    for (const folder of new Set([dirname(path), ...made])) syncFolder(folder);
    return { kind: "done" };
  });
}

/** Removes objects, and folders that are empty then. */
export function remove(layout: Layout, keys: readonly string[]): CommitResult {
  return reporting(() => {
    const changed = new Set<string>();
    for (const key of keys) if (removeOne(layout, key)) changed.add(dirname(pathOf(layout, key)));
    for (const folder of changed) syncFolder(folder);
    for (const key of keys) removeEmpty(foldersOf(layout, key));
    return { kind: "done" };
  });
}

function isHeld(condition: Exclude<PutCondition, { kind: "any" }>, etag: string | undefined): boolean {
  return condition.kind === "absent" ? etag === undefined : etag === condition.etag;
}

/** Undefined if there is no object. */
function etagOf(layout: Layout, key: string): string | undefined {
  try {
    return foldersOf(layout, key).every(isFolder) ? readHeaderSync(pathOf(layout, key)).etag : undefined;
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT")) return undefined;
    // It is there, and no etag is that of damage.
    if (thrown instanceof NotAnObject) return "";
    throw thrown;
  }
}

/** Makes the folders that are missing. Returns those in which one was made. */
function makeFolders(layout: Layout, key: string): readonly string[] {
  const changed: string[] = [];
  for (const folder of foldersOf(layout, key)) {
    if (isFolder(folder)) continue;
    mkdirSync(folder, { mode: 0o700 });
    changed.push(dirname(folder));
  }
  return changed;
}

function isFolder(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (stat.isSymbolicLink()) throw new NoFolder("ELOOP");
  if (!stat.isDirectory()) throw new NoFolder("ENOTDIR");
  return true;
}

function removeOne(layout: Layout, key: string): boolean {
  const path = pathOf(layout, key);
  try {
    if (!foldersOf(layout, key).every(isFolder)) return false;
    // A folder of other keys is no object.
    if (lstatSync(path).isDirectory()) return false;
    unlinkSync(path);
    return true;
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT", "ENOTDIR")) return false;
    throw thrown;
  }
}

function removeEmpty(folders: readonly string[]): void {
  for (const folder of folders.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Another object is in it, or it is gone.
      return;
    }
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function reporting(work: () => CommitResult): CommitResult {
  try {
    return work();
  } catch (thrown) {
    const { code = "", message } = thrown as Error & { readonly code?: string };
    return { kind: "failed", code, message };
  }
}
