import { randomBytes } from "node:crypto";
import { type Call, SandboxError, systemClock, type Clock } from "@turnbox/core";
import type { DataKey } from "../key-wrap/data-key.ts";
import { FakeKeyWrap } from "../key-wrap/fake/fake-key-wrap.ts";
import type { KeyOwner, KeyWrap } from "../key-wrap/key-wrap.ts";
import { DataKeys } from "./manifest/data-keys.ts";
import type {
  ArchivedBase,
  ArchivedSession,
  ArchivedSnapshot,
  KeyEntry,
  SandboxManifest,
  TemplateManifest,
} from "./manifest/manifest.ts";
import { ManifestStore } from "./manifest/manifest-store.ts";
import { sandboxOf, templateOf } from "./manifest/owner.ts";
import { MemoryStore } from "./memory-store.suite.ts";
import { ObjectReader } from "./object/object-reader.ts";
import type { ObjectRecord } from "./object/object-record.ts";
import { ObjectWriter } from "./object/object-writer.ts";

export const CALL: Call = { signal: new AbortController().signal };
/** What cannot be compressed: each object has as many parts as its length says. */
export const noise = (bytes: number): Buffer => randomBytes(bytes);
export const DIGEST = "ab".repeat(32);

export async function* chunksOf(bytes: Uint8Array, chunkBytes = 100): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.byteLength; offset += chunkBytes)
    yield bytes.subarray(offset, offset + chunkBytes);
}

export async function readAll(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The failure of the work as a `SandboxError`, or an error of its own if it does not fail so. */
export async function failureOf(work: Promise<unknown>): Promise<SandboxError> {
  const thrown: unknown = await work.then(
    () => new Error("it did not fail"),
    (failure: unknown) => failure,
  );
  if (!(thrown instanceof SandboxError)) throw thrown;
  return thrown;
}

/** A host's side of an archive, with parts of a few bytes. */
export class Rig {
  readonly store: MemoryStore;
  readonly keys: DataKeys;
  readonly manifests: ManifestStore;
  readonly writer: ObjectWriter;
  readonly reader: ObjectReader;

  constructor({
    clock = systemClock,
    store = new MemoryStore(clock),
    wrap = new FakeKeyWrap(),
    partBytes = 64,
  }: {
    readonly clock?: Clock;
    readonly store?: MemoryStore;
    readonly wrap?: KeyWrap;
    readonly partBytes?: number;
  } = {}) {
    this.store = store;
    this.keys = new DataKeys(wrap);
    this.manifests = new ManifestStore({ store, keys: this.keys, clock });
    this.writer = new ObjectWriter({ store, clock, partBytes });
    this.reader = new ObjectReader({ store });
  }

  async write(bytes: Uint8Array, key: DataKey): Promise<ObjectRecord> {
    return await this.writer.write(chunksOf(bytes), key, CALL);
  }

  async read(record: ObjectRecord, key: DataKey): Promise<Buffer> {
    return await readAll(this.reader.read(record, key, CALL) as AsyncIterable<Uint8Array>);
  }

  /** A new data key and its entry. */
  async key(owner: KeyOwner): Promise<{ readonly entry: KeyEntry; readonly key: DataKey }> {
    const entry = await this.keys.create(owner, CALL);
    return { entry, key: await this.keys.open(entry, CALL) };
  }

  /** A sandbox with a base and so many snapshots of so many bytes; its manifest is not written. */
  async sandbox({
    tenant = "t1",
    id = "s1",
    snapshots = 2,
    bytes = 150,
  }: Partial<Record<"tenant" | "id", string> & Record<"snapshots" | "bytes", number>> = {}): Promise<SandboxManifest> {
    const owner = sandboxOf(tenant, id);
    const { entry, key } = await this.key(owner);
    const base: ArchivedBase = {
      name: "mini",
      digest: DIGEST,
      guid: "100",
      parentGuid: null,
      streamFormat: "zfs",
      object: await this.write(noise(bytes), key),
    };
    const rows: ArchivedSnapshot[] = [];
    for (let number = 1; number <= snapshots; number += 1)
      rows.push(snapshotRow(number, await this.write(noise(bytes), key)));
    return {
      owner,
      revision: 1,
      epoch: 1,
      key: entry.id,
      keys: [entry],
      session: SESSION,
      bases: [base],
      ancestors: [],
      snapshots: rows,
      calls: [
        {
          callId: "c1",
          payloadHash: "h",
          generation: 1,
          headGeneration: 1,
          status: "finished",
          result: '{"ok":1}',
          atMs: 5,
        },
      ],
      receipts: [{ scope: "turn", key: "k", payloadHash: "h", result: "{}", atMs: 6 }],
      continuesFrom: rows.at(-1)?.id ?? null,
      archivedTurn: rows.length,
      archivedAtMs: 7,
    };
  }

  async template(tenant = "t1"): Promise<TemplateManifest> {
    const owner = templateOf(tenant, DIGEST);
    const { entry, key } = await this.key(owner);
    const object = await this.write(noise(90), key);
    return {
      owner,
      revision: 1,
      epoch: 1,
      key: entry.id,
      keys: [entry],
      base: { name: "mini", digest: DIGEST, guid: "100", parentGuid: null, streamFormat: "zfs", object },
      createdAtMs: 3,
    };
  }
}

export const SESSION: ArchivedSession = {
  base: { name: "mini", digest: DIGEST },
  createdAtMs: 1000,
  labels: { team: "a" },
  env: { LANG: "C" },
  limits: { cpus: 0.5, memoryBytes: 1024 },
  timing: { ttlMs: null, expiresAtMs: null, idleTimeoutMs: 60_000, onTimeout: "pause" },
  ports: [8080],
  networkPolicy: {
    allowPublicIngress: false,
    allowOutbound: true,
    allowList: ["example.com"],
    denyList: [],
    required: true,
  },
  forkedFrom: null,
  quotaBytes: 1_000_000,
  refquotaBytes: null,
  turnCounter: 9,
  generation: 3,
};

export function snapshotRow(number: number, object: ObjectRecord): ArchivedSnapshot {
  return {
    id: `snap-${number}`,
    kind: "turn",
    turnNumber: number,
    turnKey: null,
    outcome: "succeeded",
    title: null,
    toolCallId: null,
    createdAtMs: 1000 + number,
    parent: number === 1 ? null : `snap-${number - 1}`,
    generation: 1,
    guid: String(100 + number),
    parentGuid: String(99 + number),
    streamFormat: "zfs",
    object,
  };
}
