import type { KeyOwner } from "../../key-wrap/key-wrap.ts";
import type { CallRow, ReceiptRow, SessionRow, SnapshotRow } from "../../record/row.ts";
import type { BaseRef } from "../../storage/storage.ts";
import type { StreamFormat } from "../../storage/streams.ts";
import type { ObjectRecord } from "../object/object-record.ts";

/** A data key as manifests hold it: of their own owner, or of another one whose objects they name. */
export interface KeyEntry {
  /** The id of the data key. */
  readonly id: string;
  /** Whose key it is. It is unwrapped in the context of this owner. */
  readonly owner: KeyOwner;
  /** The key that it was wrapped by. */
  readonly wrappedBy: string;
  /** The wrapped key, in base64. */
  readonly wrapped: string;
}

/** What can be read of a manifest without a key. It is authentic only once the body was decrypted. */
export interface ManifestHead {
  readonly owner: KeyOwner;
  /** From 1 on, and higher with each write. */
  readonly revision: number;
  /** Who may write: a writer of a lower epoch is refused. */
  readonly epoch: number;
  /** The id of the data key that the body, and everything new, is encrypted under. */
  readonly key: string;
  /** All data keys that the objects of the manifest need. */
  readonly keys: readonly KeyEntry[];
}

/** A stream of a storage as an object. `guid` and `parentGuid` say what it is an increment of. */
export interface ArchivedStream {
  readonly guid: string;
  /** Null for a full stream. */
  readonly parentGuid: string | null;
  readonly streamFormat: StreamFormat;
  readonly object: ObjectRecord;
}

/** The files of a template, as a full stream. */
export interface ArchivedBase extends BaseRef, ArchivedStream {
  readonly parentGuid: null;
}

export type ArchivedSnapshot = ArchivedStream & Omit<SnapshotRow, "token" | "name">;

/** What a session is beyond its files. */
export type ArchivedSession = Pick<
  SessionRow,
  | "base"
  | "createdAtMs"
  | "labels"
  | "env"
  | "limits"
  | "timing"
  | "ports"
  | "networkPolicy"
  | "forkedFrom"
  | "quotaBytes"
  | "refquotaBytes"
  | "turnCounter"
  | "generation"
>;

/** A tool call of the ledger. Content in a result file is not archived. */
export type ArchivedCall = Omit<CallRow, "token" | "resultFile">;

export interface SandboxBody {
  readonly session: ArchivedSession;
  /** The bases that streams are increments of. */
  readonly bases: readonly ArchivedBase[];
  /**
   * Snapshots of sandboxes that this one was forked from, as far as its chain stands on them. They are objects of those
   * sandboxes, under their data keys; no snapshots that a caller of this one sees.
   */
  readonly ancestors: readonly ArchivedStream[];
  readonly snapshots: readonly ArchivedSnapshot[];
  /** Within bounds: the newest; see `keepNewest` in ledger.ts. */
  readonly calls: readonly ArchivedCall[];
  readonly receipts: readonly ReceiptRow[];
  /** The id of the snapshot that the live files continue from. */
  readonly continuesFrom: string | null;
  /** The number of the last turn that is archived; 0 if none is. */
  readonly archivedTurn: number;
  readonly archivedAtMs: number;
}

export interface TemplateBody {
  readonly base: ArchivedBase;
  readonly createdAtMs: number;
}

/** All that is archived of a sandbox. */
export interface SandboxManifest extends ManifestHead, SandboxBody {
  readonly owner: KeyOwner & { readonly kind: "sandbox" };
}

/** A template, of which each sandbox that was made from it holds the object record. */
export interface TemplateManifest extends ManifestHead, TemplateBody {
  readonly owner: KeyOwner & { readonly kind: "template" };
}

export type Manifest = SandboxManifest | TemplateManifest;

export const isSandboxManifest = (manifest: Manifest): manifest is SandboxManifest => manifest.owner.kind === "sandbox";

/** Every stream of the manifest; those that others are increments of come first, as far as the manifest has them in order. */
export function* streamsOf(manifest: Manifest): Generator<ArchivedStream> {
  if (!isSandboxManifest(manifest)) {
    yield manifest.base;
    return;
  }
  yield* manifest.bases;
  yield* manifest.ancestors;
  yield* manifest.snapshots;
}

/** Every object that the manifest names. */
export function* objectsOf(manifest: Manifest): Generator<ObjectRecord> {
  for (const { object } of streamsOf(manifest)) yield object;
}

/** A stream whose parent the manifest does not hold: it cannot be received. */
export interface BrokenLink {
  readonly guid: string;
  readonly parentGuid: string;
  readonly object: string;
}

/** The streams that the archive holds no way to, each with the parent that is missing. */
export function brokenLinks(manifest: Manifest): readonly BrokenLink[] {
  const known = new Set([...streamsOf(manifest)].map(({ guid }) => guid));
  return [...streamsOf(manifest)].flatMap(({ guid, parentGuid, object }) =>
    parentGuid === null || (known.has(parentGuid) && parentGuid !== guid)
      ? []
      : [{ guid, parentGuid, object: object.id }],
  );
}
