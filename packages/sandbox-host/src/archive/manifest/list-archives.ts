import type { Call } from "@turnbox/core";
import type { ObjectInfo, ObjectStore } from "../../object-store/object-store.ts";
import type { ManifestStore } from "./manifest-store.ts";
import { objectsOf } from "./manifest.ts";
import { manifestsOf, ownerOfKey, sandboxOf } from "./owner.ts";

/** Every object whose key begins with `prefix`, a page at a time, from the first one after `after`. */
export async function* listAll(
  store: ObjectStore,
  { prefix, after }: { readonly prefix: string; readonly after?: string },
  call: Call,
): AsyncGenerator<readonly ObjectInfo[]> {
  for (let last = after, more = true; more; ) {
    const page = await store.list(prefix, last === undefined ? {} : { after: last }, call);
    yield page.objects;
    last = page.objects.at(-1)?.key ?? last;
    more = page.more && page.objects.length > 0;
  }
}

/** What a tenant has of one sandbox in the archive. */
export interface ArchivedSandbox {
  readonly sandbox: string;
  readonly revision: number;
  readonly epoch: number;
  readonly archivedTurn: number;
  readonly archivedAtMs: number;
  readonly snapshots: number;
  /** Of the streams before they were compressed. */
  readonly plainBytes: number;
  /** Of all parts that it names and the manifest. Forks and templates share parts, which are counted for each. */
  readonly storedBytes: number;
}

/** One that cannot be read, with its failure. */
export interface UnreadableSandbox {
  readonly sandbox: string;
  readonly failure: unknown;
}

export type ListedSandbox = ArchivedSandbox | UnreadableSandbox;

/** The sandboxes of a tenant in the order of their ids. One that cannot be read is listed with its failure. */
export async function* listArchives(
  { store, manifests }: { readonly store: ObjectStore; readonly manifests: ManifestStore },
  tenant: string,
  call: Call,
): AsyncGenerator<ListedSandbox> {
  for await (const objects of listAll(store, { prefix: manifestsOf(tenant, "sandbox") }, call)) {
    for (const { key } of objects) {
      const sandbox = ownerOfKey(key)?.id;
      if (sandbox !== undefined) yield await describe(manifests, { tenant, sandbox }, call);
    }
  }
}

async function describe(
  manifests: ManifestStore,
  { tenant, sandbox }: { readonly tenant: string; readonly sandbox: string },
  call: Call,
): Promise<ListedSandbox> {
  try {
    const { manifest, storedBytes } = await manifests.read(sandboxOf(tenant, sandbox), {}, call);
    const { revision, epoch, archivedTurn, archivedAtMs, snapshots } = manifest;
    const sizes = { plainBytes: 0, storedBytes };
    for (const object of objectsOf(manifest)) {
      sizes.plainBytes += object.plainBytes;
      sizes.storedBytes += object.storedBytes;
    }
    return { sandbox, revision, epoch, archivedTurn, archivedAtMs, snapshots: snapshots.length, ...sizes };
  } catch (failure) {
    call.signal.throwIfAborted();
    return { sandbox, failure };
  }
}
