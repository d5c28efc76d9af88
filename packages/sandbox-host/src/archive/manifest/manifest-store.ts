import { type Call, type Clock, hasReason, invalidArgument, SandboxError } from "@turnbox/core";
import type { KeyOwner } from "../../key-wrap/key-wrap.ts";
import { MAX_PUT_BYTES, type ObjectStore, type PutCondition } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import type { ObjectRecord } from "../object/object-record.ts";
import { readBounded } from "../read-bounded.ts";
import { awaitSweep } from "../sweep-list/await-sweep.ts";
import type { DataKeys } from "./data-keys.ts";
import { bodyOf, decodeManifest } from "./decode-manifest.ts";
import { openManifest, sealManifest } from "./envelope.ts";
import { decodeHeader, type Header } from "./header.ts";
import { type Manifest, objectsOf, type SandboxManifest, type TemplateManifest } from "./manifest.ts";
import { isSameOwner, manifestKey, nameOf, type SandboxOwner, type TemplateOwner } from "./owner.ts";

/** Which manifest a writer has seen, and replaces. */
export interface ManifestVersion {
  readonly etag: string;
  readonly revision: number;
  readonly epoch: number;
}

export interface StoredManifest<M extends Manifest = Manifest> {
  readonly manifest: M;
  readonly version: ManifestVersion;
  readonly storedBytes: number;
}

export interface ReadManifestOptions {
  /** The last revision that is known to have been written. Default 1. */
  readonly atLeastRevision?: number;
}

export interface WriteManifestOptions {
  /** What the manifest takes the place of. */
  readonly replaces: ManifestVersion | "absent";
  /**
   * Objects that the manifest names, that no earlier revision of it named, and that the caller has not itself written within
   * half of the grace time: those of the sandbox that this one is a fork of. They are looked for after the write.
   */
  readonly old?: readonly ObjectRecord[];
}

export interface ManifestStoreOptions {
  readonly store: ObjectStore;
  readonly keys: DataKeys;
  readonly clock: Clock;
}

/** The manifests of sandboxes and templates, each one object that is replaced by compare-and-set. */
export class ManifestStore {
  readonly #options: ManifestStoreOptions;

  constructor(options: ManifestStoreOptions) {
    this.#options = options;
  }

  /**
   * Fails with `ARCHIVE_NOT_FOUND`, with `ARCHIVE_DAMAGED` naming the field, with `ARCHIVE_KEY_WRONG`, and with `ARCHIVE_OUTDATED`
   * if its revision is lower than the known one.
   */
  read(owner: SandboxOwner, options: ReadManifestOptions, call: Call): Promise<StoredManifest<SandboxManifest>>;
  read(owner: TemplateOwner, options: ReadManifestOptions, call: Call): Promise<StoredManifest<TemplateManifest>>;
  read(owner: KeyOwner, options: ReadManifestOptions, call: Call): Promise<StoredManifest>;
  async read(owner: KeyOwner, options: ReadManifestOptions, call: Call): Promise<StoredManifest> {
    try {
      return await this.#read(owner, options, call);
    } catch (failure) {
      throw hasReason(failure, "ARCHIVE_DAMAGED") ? inManifest(owner, failure) : failure;
    }
  }

  /**
   * Returns when the manifest is stored and all that it names is there to stay. Fails with `ARCHIVE_CHANGED` if another writer
   * came first, or the epoch is lower than that of what is there; and with `ARCHIVE_DAMAGED` and `admitted: "yes"` if an old
   * object was removed meanwhile: the manifest is stored then, and the caller archives that object again.
   */
  async write(manifest: Manifest, options: WriteManifestOptions, call: Call): Promise<ManifestVersion> {
    const { replaces, old = [] } = options;
    checkOrder(manifest, replaces);
    const checked = decodeManifest(manifest, bodyOf(manifest));
    const key = await this.#options.keys.openOf(checked, checked.key, call);
    const bytes = await sealManifest(checked, bodyOf(checked), key);
    const version = await this.#put(checked, { bytes, replaces }, call);
    await awaitSweep(this.#options, { all: () => objectsOf(checked), old }, call).catch((failure: unknown) => {
      throw hasReason(failure, "ARCHIVE_DAMAGED") ? asAdmitted(failure) : failure;
    });
    return version;
  }

  async #read(owner: KeyOwner, { atLeastRevision = 1 }: ReadManifestOptions, call: Call): Promise<StoredManifest> {
    const { bytes, etag, header, length } = await this.#fetch(owner, call);
    if (!isSameOwner(header.owner, owner))
      throw damaged(`owner: it is the manifest of ${nameOf(header.owner)}`, { fault: "wrong owner", field: "owner" });
    const key = await this.#options.keys.openOf(header, header.key, call);
    const manifest = decodeManifest(header, await openManifest({ bytes, header, length }, key));
    call.signal.throwIfAborted();
    const { revision, epoch } = manifest;
    if (revision < atLeastRevision) throw outdated(owner, revision, atLeastRevision);
    return { manifest, version: { etag, revision, epoch }, storedBytes: bytes.byteLength };
  }

  async #put(
    { owner, revision, epoch }: Manifest,
    { bytes, replaces }: { readonly bytes: Buffer; readonly replaces: ManifestVersion | "absent" },
    call: Call,
  ): Promise<ManifestVersion> {
    const condition: PutCondition =
      replaces === "absent" ? { kind: "absent" } : { kind: "matches", etag: replaces.etag };
    try {
      const { etag } = await this.#options.store.put(manifestKey(owner), bytes, { condition }, call);
      return { etag, revision, epoch };
    } catch (failure) {
      if (!hasReason(failure, "OBJECT_CHANGED", "OBJECT_NOT_FOUND")) throw failure;
      const present = await this.#lookAt(owner, call);
      // An earlier attempt of the same write took effect, and its answer was lost.
      if (present?.bytes.equals(bytes) === true) return { etag: present.etag, revision, epoch };
      throw changed(owner, present?.header, failure);
    }
  }

  /** What is there, as far as it can be known without a key. */
  async #lookAt(owner: KeyOwner, call: Call): Promise<(SealedAt & { readonly etag: string }) | undefined> {
    try {
      return await this.#fetch(owner, call);
    } catch (failure) {
      if (hasReason(failure, "ARCHIVE_NOT_FOUND")) return undefined;
      throw failure;
    }
  }

  async #fetch(owner: KeyOwner, call: Call): Promise<SealedAt & { readonly etag: string }> {
    try {
      const read = await readBounded(this.#options.store, { key: manifestKey(owner), most: MAX_PUT_BYTES }, call);
      return { ...read, ...decodeHeader(read.bytes) };
    } catch (failure) {
      if (hasReason(failure, "OBJECT_NOT_FOUND"))
        throw new SandboxError("ARCHIVE_NOT_FOUND", `there is no archive of ${nameOf(owner)}`, { cause: failure });
      if (hasReason(failure, "OBJECT_DAMAGED"))
        throw damaged("it is not what was stored", { fault: "wrong digest", cause: failure });
      throw failure;
    }
  }
}

interface SealedAt {
  readonly bytes: Buffer;
  readonly header: Header;
  readonly length: number;
}

function checkOrder({ owner, revision, epoch }: Manifest, replaces: ManifestVersion | "absent"): void {
  if (replaces === "absent") return;
  if (epoch < replaces.epoch) throw changed(owner, replaces);
  if (revision <= replaces.revision)
    throw invalidArgument("revision", `must be higher than ${replaces.revision}, which it replaces`);
}

function changed(
  owner: KeyOwner,
  present: Pick<ManifestVersion, "revision" | "epoch"> | undefined,
  cause?: unknown,
): SandboxError {
  const there =
    present === undefined ? "there is none now" : `revision ${present.revision} of epoch ${present.epoch} is there now`;
  return new SandboxError("ARCHIVE_CHANGED", `the manifest of ${nameOf(owner)} is not the one to replace: ${there}`, {
    metadata: present === undefined ? {} : { revision: String(present.revision), epoch: String(present.epoch) },
    cause,
  });
}

const outdated = (owner: KeyOwner, revision: number, known: number): SandboxError =>
  new SandboxError(
    "ARCHIVE_OUTDATED",
    `the manifest of ${nameOf(owner)} has revision ${revision}, and ${known} was written`,
    {
      metadata: { revision: String(revision), known: String(known) },
    },
  );

const inManifest = (owner: KeyOwner, failure: SandboxError): SandboxError =>
  new SandboxError(failure.reason, `manifest of ${nameOf(owner)}: ${failure.message}`, {
    metadata: { ...failure.metadata, tenant: owner.tenant, [owner.kind]: owner.id },
    cause: failure,
  });

const asAdmitted = (failure: SandboxError): SandboxError =>
  new SandboxError(failure.reason, failure.message, { metadata: failure.metadata, admitted: "yes", cause: failure });
