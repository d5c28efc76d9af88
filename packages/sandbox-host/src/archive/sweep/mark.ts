import { type Call, hasReason, mapConcurrent } from "@turnbox/core";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import { listAll } from "../manifest/list-archives.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import { objectsOf } from "../manifest/manifest.ts";
import { MANIFESTS_PREFIX, ownerOfKey } from "../manifest/owner.ts";

/** Each may be as large as a manifest can be. */
const AT_ONCE = 2;
const MAX_UNREADABLE = 100;

/** A manifest that cannot be read: what it names is not known, so nothing may be removed. */
export interface UnreadableManifest {
  readonly key: string;
  readonly failure: unknown;
}

export interface Marked {
  readonly manifests: number;
  /** The first ones; if there is one, the marks are not complete. */
  readonly unreadable: readonly UnreadableManifest[];
}

export interface MarkOptions {
  readonly store: ObjectStore;
  readonly manifests: ManifestStore;
  /** Called with each part that a manifest names. */
  readonly mark: (sha256: string) => void;
}

/** Reads all manifests and marks what they name. */
export async function markAll({ store, manifests, mark }: MarkOptions, call: Call): Promise<Marked> {
  const unreadable: UnreadableManifest[] = [];
  let count = 0;
  for await (const objects of listAll(store, { prefix: MANIFESTS_PREFIX }, call)) {
    await mapConcurrent(objects, AT_ONCE, async ({ key }) => {
      try {
        const marked = await markOne({ manifests, mark }, key, call);
        count += marked;
      } catch (failure) {
        if (!isUnreadable(failure)) throw failure;
        if (unreadable.length < MAX_UNREADABLE) unreadable.push({ key, failure });
      }
    });
  }
  return { manifests: count, unreadable };
}

const isUnreadable = (failure: unknown): boolean => hasReason(failure, "ARCHIVE_DAMAGED", "ARCHIVE_KEY_WRONG");

async function markOne(
  { manifests, mark }: Pick<MarkOptions, "manifests" | "mark">,
  key: string,
  call: Call,
): Promise<number> {
  const owner = ownerOfKey(key);
  if (owner === undefined) throw damaged(`${key}: is no key of a manifest`, { fault: "wrong owner" });
  try {
    const { manifest } = await manifests.read(owner, {}, call);
    for (const { parts } of objectsOf(manifest)) for (const { sha256 } of parts) mark(sha256);
    return 1;
  } catch (failure) {
    // It was removed since it was listed.
    if (hasReason(failure, "ARCHIVE_NOT_FOUND")) return 0;
    throw failure;
  }
}
