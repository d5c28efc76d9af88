import { type Call, hasReason, type SandboxError } from "@turnbox/core";
import type { KeyOwner } from "../../key-wrap/key-wrap.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import type { DataKeys } from "../manifest/data-keys.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import { brokenLinks, type Manifest, objectsOf } from "../manifest/manifest.ts";
import { ObjectReader } from "../object/object-reader.ts";
import type { ObjectRecord } from "../object/object-record.ts";
import { PartReader } from "../object/part-reader.ts";

const MAX_FAULTS = 1000;

export interface VerifyOptions {
  readonly store: ObjectStore;
  readonly manifests: ManifestStore;
  readonly keys: DataKeys;
}

export interface VerifyDepth {
  /** Looks only whether each part is there in its size, and reads none. */
  readonly quick?: boolean;
  readonly atLeastRevision?: number;
}

export interface VerifyReport {
  readonly objects: number;
  readonly parts: number;
  readonly storedBytes: number;
  /** Errors that say what is wrong with what, the first 1,000; empty if all is well. */
  readonly faults: readonly SandboxError[];
}

/** Reads everything that a sandbox or a template has in the archive and reports each fault. Fails if the store does. */
export async function verifyArchive(
  options: VerifyOptions,
  { owner, quick = false, atLeastRevision = 1 }: VerifyDepth & { readonly owner: KeyOwner },
  call: Call,
): Promise<VerifyReport> {
  const faults = new Faults();
  const stored = await faults.attempt(options.manifests.read(owner, { atLeastRevision }, call));
  const total = { objects: 0, parts: 0, storedBytes: 0 };
  if (stored === undefined) return { ...total, faults: faults.found };
  const { manifest } = stored;
  for (const { guid, parentGuid, object } of brokenLinks(manifest))
    faults.add(damaged(`stream ${guid}: its parent ${parentGuid} is not there`, { fault: "missing parent", object }));
  for (const record of new Map([...objectsOf(manifest)].map((one) => [one.id, one])).values()) {
    total.objects += 1;
    total.parts += record.parts.length;
    total.storedBytes += record.storedBytes;
    await verifyObject(options, { manifest, record, quick, faults }, call);
  }
  return { ...total, faults: faults.found };
}

interface Subject {
  readonly manifest: Manifest;
  readonly record: ObjectRecord;
  readonly quick: boolean;
  readonly faults: Faults;
}

async function verifyObject(
  { store, keys }: VerifyOptions,
  { manifest, record, quick, faults }: Subject,
  call: Call,
): Promise<void> {
  const key = await faults.attempt(keys.openOf(manifest, record.key, call));
  if (key === undefined) return;
  const before = faults.count;
  if (!quick) await faults.attempt(drain(new ObjectReader({ store }).read(record, key, call)));
  const isFaulty = faults.count > before;
  if (!quick && !isFaulty) return;
  // The first fault ended the read. Now each part by itself, and the fault that is known is found again.
  using reader = new PartReader(store, record, key);
  const perPart = new Faults();
  for (const index of record.parts.keys())
    await perPart.attempt<unknown>(quick ? reader.look(index, call) : reader.read(index, call));
  if (isFaulty && perPart.count > 0) faults.removeLast();
  for (const fault of perPart.found) faults.add(fault);
}

async function drain(plain: AsyncIterable<unknown>): Promise<void> {
  for await (const _chunk of plain) continue;
}

/** A bounded list of what is wrong. */
class Faults {
  readonly #found: SandboxError[] = [];
  #count = 0;

  get found(): readonly SandboxError[] {
    return this.#found;
  }

  get count(): number {
    return this.#count;
  }

  /** The result, or undefined if it is a fault of the archive. Any other failure is thrown. */
  async attempt<T>(work: Promise<T>): Promise<T | undefined> {
    try {
      return await work;
    } catch (failure) {
      if (!hasReason(failure, "ARCHIVE_DAMAGED", "ARCHIVE_KEY_WRONG", "ARCHIVE_NOT_FOUND", "ARCHIVE_OUTDATED"))
        throw failure;
      this.add(failure);
      return undefined;
    }
  }

  add(fault: SandboxError): void {
    this.#count += 1;
    if (this.#found.length < MAX_FAULTS) this.#found.push(fault);
  }

  /** Forgets the last one, which is about to be found again. */
  removeLast(): void {
    if (this.#count === this.#found.length) this.#found.pop();
    this.#count -= 1;
  }
}
