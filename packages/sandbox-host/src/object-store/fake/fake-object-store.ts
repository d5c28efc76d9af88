import { Readable } from "node:stream";
import { type Call, type Clock, SandboxError, systemClock } from "@turnbox/core";
import { bodyChunks, unwrapBodyFailure } from "../body-chunks.ts";
import { CheckedBody } from "../checked-body.ts";
import { sha256Of, WholeCheck } from "../content-check.ts";
import type {
  GetOptions,
  ListOptions,
  ObjectInfo,
  ObjectPage,
  ObjectStore,
  PutCondition,
  PutOptions,
  PutResult,
} from "../object-store.ts";
import { probe } from "../probe.ts";
import { parseBody, parseCondition, parseKey, parseKeys, parseListOptions, parsePrefix, parseRange } from "../rules.ts";
import { type BodyFault, FakeObjectFaults } from "./fake-faults.ts";

interface Stored extends ObjectInfo {
  readonly content: Buffer;
}

/** Objects in memory. */
export class FakeObjectStore implements ObjectStore {
  readonly kind = "fake";
  readonly faults = new FakeObjectFaults();
  readonly #clock: Clock;
  readonly #objects = new Map<string, Stored>();
  /** What lists show while they are behind. */
  #shown: readonly ObjectInfo[] | undefined;
  #puts = 0;

  constructor({ clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.#clock = clock;
  }

  /** All objects that there are, by key. */
  get objects(): ReadonlyMap<string, { readonly content: Buffer; readonly etag: string }> {
    return this.#objects;
  }

  /** Lists show what is there now until they are brought up to date. */
  freezeLists(): void {
    this.#shown = this.#sorted();
  }

  thawLists(): void {
    this.#shown = undefined;
  }

  /** One byte of what is stored is another one from now on. */
  damage(key: string): void {
    const content = this.#objects.get(key)?.content;
    if (content !== undefined) content.writeUInt8(content.readUInt8(0) ^ 1, 0);
  }

  async put(key: string, body: Uint8Array, options: PutOptions, { signal }: Call): Promise<PutResult> {
    parseKey("key", key);
    parseBody(body);
    const condition = parseCondition(options.condition);
    return await this.faults.around("put", signal, async () => this.#store(key, Buffer.from(body), condition));
  }

  async putStream(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { signal }: Call,
  ): Promise<PutResult & { readonly bytes: number }> {
    parseKey("key", key);
    return await this.faults.around("putStream", signal, async () => {
      const content = await readWhole(body, signal);
      return { ...this.#store(key, content, { kind: "any" }), bytes: content.byteLength };
    });
  }

  async get(key: string, { range }: GetOptions, { signal }: Call): Promise<ObjectInfo & { readonly body: Readable }> {
    parseKey("key", key);
    parseRange(range);
    return await this.faults.around("get", signal, async () => {
      const stored = this.#objects.get(key);
      if (stored === undefined) throw new SandboxError("OBJECT_NOT_FOUND", `there is no object ${key}`);
      const { content, ...info } = stored;
      const { offset, bytes } = range ?? { offset: 0, bytes: content.byteLength };
      const part = content.subarray(offset, offset + bytes);
      const body = new CheckedBody({
        key,
        source: Readable.from(spoil(part, this.faults.takeBodyFault())),
        bytes: part.byteLength,
        check: range === undefined ? new WholeCheck(info.etag.split("-")[0] ?? "") : undefined,
        failureOf: (cause) => new SandboxError("OBJECT_STORE_UNAVAILABLE", String(cause), { cause }),
        signal,
      });
      return { ...info, body };
    });
  }

  async stat(key: string, { signal }: Call): Promise<ObjectInfo | undefined> {
    parseKey("key", key);
    return await this.faults.around("stat", signal, async () => infoOf(this.#objects.get(key)));
  }

  async list(prefix: string, options: ListOptions, { signal }: Call): Promise<ObjectPage> {
    parsePrefix(prefix);
    const { after, limit } = parseListOptions(options);
    return await this.faults.around("list", signal, async () => {
      const all = (this.#shown ?? this.#sorted()).filter(({ key }) => key.startsWith(prefix) && key > after);
      return { objects: all.slice(0, limit), more: all.length > limit };
    });
  }

  async delete(keys: readonly string[], { signal }: Call): Promise<void> {
    parseKeys(keys);
    await this.faults.around("delete", signal, async () => {
      for (const key of keys) this.#objects.delete(key);
    });
  }

  async check(call: Call): Promise<void> {
    await this.faults.around("check", call.signal, () => probe(this, this.#clock, call));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It holds nothing.
  }

  #store(key: string, content: Buffer, condition: PutCondition): PutResult {
    const present = this.#objects.get(key);
    if (this.faults.conditions === "kept") expectCondition(key, condition, present);
    const others = [...this.#objects.values()].reduce((sum, { bytes }) => sum + bytes, 0) - (present?.bytes ?? 0);
    if (others + content.byteLength > this.faults.capacityBytes) {
      throw new SandboxError("OBJECT_STORE_FULL", "the object store is full");
    }
    this.#puts += 1;
    const etag = `${sha256Of(content)}-${this.#puts}`;
    const info = { key, bytes: content.byteLength, etag, modifiedAtMs: this.#clock.nowMs() };
    this.#objects.set(key, { ...info, content });
    return { etag };
  }

  #sorted(): readonly ObjectInfo[] {
    return [...this.#objects.values()]
      .map(({ content: _content, ...info }) => info)
      .sort((one, other) => (one.key < other.key ? -1 : 1));
  }
}

function expectCondition(key: string, condition: PutCondition, present: ObjectInfo | undefined): void {
  const isHeld =
    condition.kind === "any" ||
    (condition.kind === "absent" ? present === undefined : present?.etag === condition.etag);
  if (!isHeld) throw new SandboxError("OBJECT_CHANGED", `the object ${key} is not what the write expects`);
}

async function readWhole(body: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of bodyChunks(body, signal)) chunks.push(Buffer.from(chunk));
  } catch (thrown) {
    throw unwrapBodyFailure(thrown);
  }
  return Buffer.concat(chunks);
}

function infoOf(stored: Stored | undefined): ObjectInfo | undefined {
  if (stored === undefined) return undefined;
  const { content: _content, ...info } = stored;
  return info;
}

const CHUNK_BYTES = 64 * 1024;

function* spoil(content: Buffer, fault: BodyFault | undefined): Generator<Buffer, void, undefined> {
  const sent = Buffer.from(fault?.kind === "cut" ? content.subarray(0, fault.bytes) : content);
  if (fault?.kind === "wrong_byte") sent.writeUInt8(sent.readUInt8(fault.bytes) ^ 1, fault.bytes);
  for (let at = 0; at < sent.byteLength; at += CHUNK_BYTES) yield sent.subarray(at, at + CHUNK_BYTES);
}
