import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { type Call, type Clock, SandboxError, systemClock } from "@turnbox/core";
import type {
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectPage,
  ObjectStore,
  PutOptions,
  PutResult,
} from "../object-store/object-store.ts";

interface Kept {
  readonly bytes: Buffer;
  readonly modifiedAtMs: number;
  readonly createdAtMs: number;
}

type Step = (operation: "put" | "get" | "stat" | "list" | "delete", key: string, call: Call) => Promise<void> | void;

/** A store of this room's tests, into which they reach. */
export class MemoryStore implements ObjectStore {
  readonly kind = "fake";
  readonly objects = new Map<string, Kept>();
  /** Called before each operation. */
  step: Step = () => undefined;
  /** Bytes of a chunk of a body. */
  chunkBytes = 64 * 1024;
  /** How far lists are behind. */
  listLagMs = 0;
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Replaces bytes without a put. */
  overwrite(key: string, bytes: Uint8Array): void {
    const modifiedAtMs = this.#clock.nowMs();
    const createdAtMs = this.objects.get(key)?.createdAtMs ?? modifiedAtMs;
    this.objects.set(key, { bytes: Buffer.from(bytes), modifiedAtMs, createdAtMs });
  }

  bytesOf(key: string): Buffer {
    const kept = this.objects.get(key);
    if (kept === undefined) throw new Error(`nothing is under ${key}`);
    return kept.bytes;
  }

  keys(prefix = ""): readonly string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).toSorted();
  }

  async put(key: string, body: Uint8Array, { condition }: PutOptions, call: Call): Promise<PutResult> {
    await this.#begin("put", key, call);
    const there = this.objects.get(key);
    const holds =
      condition?.kind === "absent"
        ? there === undefined
        : condition?.kind !== "matches" || (there !== undefined && etagOf(there) === condition.etag);
    if (!holds) throw new SandboxError("OBJECT_CHANGED", `${key} is not as it should be`);
    this.overwrite(key, body);
    return { etag: etagOf(this.objects.get(key)!) };
  }

  putStream(): Promise<PutResult & { readonly bytes: number }> {
    return Promise.reject(new Error("archives put no streams"));
  }

  async get(key: string, _options: GetOptions, call: Call): Promise<ObjectInfo & { readonly body: Readable }> {
    await this.#begin("get", key, call);
    const kept = this.objects.get(key);
    if (kept === undefined) throw new SandboxError("OBJECT_NOT_FOUND", `nothing is under ${key}`);
    const chunks: Buffer[] = [];
    for (let offset = 0; offset < kept.bytes.byteLength; offset += this.chunkBytes)
      chunks.push(kept.bytes.subarray(offset, offset + this.chunkBytes));
    return { ...infoOf(key, kept), body: Readable.from(chunks, { objectMode: false }) };
  }

  async stat(key: string, call: Call): Promise<ObjectInfo | undefined> {
    await this.#begin("stat", key, call);
    const kept = this.objects.get(key);
    return kept && infoOf(key, kept);
  }

  async list(prefix: string, { after = "", limit = 3 }: ListOptions, call: Call): Promise<ObjectPage> {
    await this.#begin("list", prefix, call);
    const latestMs = this.#clock.nowMs() - this.listLagMs;
    const keys = this.keys(prefix).filter((key) => key > after && this.objects.get(key)!.createdAtMs <= latestMs);
    const objects = keys.slice(0, limit).map((key) => infoOf(key, this.objects.get(key)!));
    return { objects, more: keys.length > limit };
  }

  async delete(keys: readonly string[], call: Call): Promise<void> {
    for (const key of keys) {
      await this.#begin("delete", key, call);
      this.objects.delete(key);
    }
  }

  check(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.objects.clear();
  }

  async #begin(operation: Parameters<Step>[0], key: string, call: Call): Promise<void> {
    call.signal.throwIfAborted();
    await this.step(operation, key, call);
    call.signal.throwIfAborted();
  }
}

const etagOf = ({ bytes }: Kept): string => createHash("sha256").update(bytes).digest("hex");

const infoOf = (key: string, kept: Kept): ObjectInfo => ({
  key,
  bytes: kept.bytes.byteLength,
  etag: etagOf(kept),
  modifiedAtMs: kept.modifiedAtMs,
});
