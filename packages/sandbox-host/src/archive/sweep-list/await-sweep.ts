import { type Call, type Clock, hasReason, mapConcurrent, poll } from "@turnbox/core";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import { type ObjectRecord, partKey, type PartRecord } from "../object/object-record.ts";
import { readBounded } from "../read-bounded.ts";
import {
  decodeSweepList,
  DIGEST_BYTES,
  isVoid,
  lists,
  MAX_LISTED,
  SWEEP_LIST_KEY,
  type SweepList,
} from "./sweep-list.ts";

const MAX_LIST_BYTES = MAX_LISTED * DIGEST_BYTES + 1024;
const POLL_MS = 2000;
const STATS_AT_ONCE = 8;

export interface StoredSweepList extends SweepList {
  readonly etag: string;
}

/** The present sweep list, or undefined if there is none. */
export async function readSweepList(store: ObjectStore, call: Call): Promise<StoredSweepList | undefined> {
  try {
    const { bytes, etag } = await readBounded(store, { key: SWEEP_LIST_KEY, most: MAX_LIST_BYTES }, call);
    return { ...decodeSweepList(bytes), etag };
  } catch (failure) {
    if (hasReason(failure, "OBJECT_NOT_FOUND")) return undefined;
    throw failure;
  }
}

export interface NamedParts {
  /** Everything that the manifest which was just written names. */
  readonly all: () => Iterable<ObjectRecord>;
  /** Of these, what may have been removed before: it is looked for in any case. */
  readonly old: readonly ObjectRecord[];
}

interface Named {
  readonly object: string;
  readonly part: PartRecord;
}

/**
 * Makes sure that what a manifest names is there to stay, after the manifest was written: waits for a garbage collection that is
 * about to remove some of it, and looks whether it did. Fails with `ARCHIVE_DAMAGED` if a part is gone.
 */
export async function awaitSweep(
  { store, clock }: { readonly store: ObjectStore; readonly clock: Clock },
  named: NamedParts,
  call: Call,
): Promise<void> {
  const { signal } = call;
  const first = await readSweepList(store, call);
  const doomed = first === undefined ? [] : [...listParts(named.all())].filter(({ part }) => lists(first, part.sha256));
  if (first !== undefined && doomed.length > 0) {
    const isOver = async (): Promise<true | undefined> => {
      const present = await readSweepList(store, call);
      return present?.etag !== first.etag || isVoid(present, clock.nowMs()) ? true : undefined;
    };
    await poll(isOver, { clock, everyMs: POLL_MS, signal });
  }
  await mapConcurrent([...doomed, ...listParts(named.old)], STATS_AT_ONCE, async ({ object, part }) => {
    const there = await store.stat(partKey(part.sha256), call);
    if (there?.bytes === part.bytes) return;
    throw damaged(`object ${object}: part ${part.sha256} was removed before the manifest named it`, {
      fault: "missing",
      object,
    });
  });
}

function* listParts(records: Iterable<ObjectRecord>): Generator<Named> {
  for (const { id, parts } of records) for (const part of parts) yield { object: id, part };
}
