import { mkdir, realpath } from "node:fs/promises";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { type Call, type Clock, hasErrno, hasReason, raceSignal, raceTime, SandboxError } from "@turnbox/core";
import { DatabaseThread } from "@turnbox/core/sqlite";
import { bodyChunks } from "../body-chunks.ts";
import { CheckedBody } from "../checked-body.ts";
import { WholeCheck } from "../content-check.ts";
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
import type { CommitInput, CommitResult } from "./commit.ts";
import { Drafts } from "./drafts.ts";
import { bodyFailure, failureUnder, fileFailure, systemError } from "./file-failure.ts";
import { type KeyWalkOptions, walkKeys } from "./key-walk.ts";
import { hasFolders, type Layout, layoutOf, pathOf } from "./layout.ts";
import { HEADER_BYTES, type OpenObject, openObject } from "./object-file.ts";

export interface FileObjectStoreOptions {
  /** Made if it is missing, for its owner alone. */
  readonly directory: string;
  readonly clock: Clock;
}

/** Files that a list opens at a time, and keys that are removed under one hold of the lock. */
const LOOKS = 16;
const REMOVALS = 100;

/** How long work on files is waited for after its signal, so that it leaves nothing. A mount that hangs is not waited for. */
const GRACE_MS = 2000;

/** Opens the store in a directory, which may be of a network file system that several hosts share. */
export async function openFileObjectStore(options: FileObjectStoreOptions, { signal }: Call): Promise<ObjectStore> {
  signal.throwIfAborted();
  const opening = open(options);
  try {
    return await raceSignal(opening, signal);
  } catch (thrown) {
    // What opens after the signal has no owner any more.
    opening.then((store) => store[Symbol.asyncDispose]()).catch(() => undefined);
    throw failureUnder(signal, thrown);
  }
}

async function open({ directory, clock }: FileObjectStoreOptions): Promise<ObjectStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const layout = layoutOf(await realpath(directory));
  for (const folder of [layout.objects, layout.drafts]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const drafts = new Drafts(layout.drafts);
  await drafts.removeLeft(clock.nowMs());
  return new FileObjectStore({ layout, drafts, clock, thread: await startThread(layout.root) });
}

interface Parts {
  readonly layout: Layout;
  readonly drafts: Drafts;
  readonly clock: Clock;
  /** Changes what is under keys. */
  readonly thread: DatabaseThread;
}

class FileObjectStore implements ObjectStore {
  readonly kind = "file";
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async put(key: string, body: Uint8Array, options: PutOptions, { signal }: Call): Promise<PutResult> {
    parseKey("key", key);
    parseBody(body);
    const condition = parseCondition(options.condition);
    const { etag } = await this.#store(key, Readable.from([body]), { condition, signal });
    return { etag };
  }

  async putStream(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { signal }: Call,
  ): Promise<PutResult & { readonly bytes: number }> {
    parseKey("key", key);
    return await this.#store(key, body, { condition: { kind: "any" }, signal });
  }

  async get(key: string, { range }: GetOptions, { signal }: Call): Promise<ObjectInfo & { readonly body: Readable }> {
    parseKey("key", key);
    parseRange(range);
    const object = await this.#open(key, signal);
    if (object === undefined) throw new SandboxError("OBJECT_NOT_FOUND", `there is no object ${key}`);
    const body = new CheckedBody({
      key,
      ...sourceOf(object, range),
      check: range === undefined ? new WholeCheck(object.etag) : undefined,
      failureOf: (thrown) => bodyFailure(key, thrown),
      signal,
    });
    return { ...infoOf(key, object), body };
  }

  async stat(key: string, { signal }: Call): Promise<ObjectInfo | undefined> {
    parseKey("key", key);
    const object = await this.#open(key, signal);
    await object?.handle.close();
    return object && infoOf(key, object);
  }

  async list(prefix: string, options: ListOptions, { signal }: Call): Promise<ObjectPage> {
    parsePrefix(prefix);
    const { after, limit } = parseListOptions(options);
    const objects = await this.#ending(this.#take({ prefix, after, most: limit + 1, signal }), signal);
    return { objects: objects.slice(0, limit), more: objects.length > limit };
  }

  async delete(keys: readonly string[], { signal }: Call): Promise<void> {
    parseKeys(keys);
    for (let at = 0; at < keys.length; at += REMOVALS) {
      signal.throwIfAborted();
      await this.#ending(this.#change("remove", keys[at] ?? "", keys.slice(at, at + REMOVALS)), signal);
    }
  }

  async check(call: Call): Promise<void> {
    const { clock, drafts } = this.#parts;
    await probe(this, clock, call);
    await this.#ending(drafts.removeLeft(clock.nowMs()), call.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.thread[Symbol.asyncDispose]();
  }

  async #store(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { condition, signal }: { readonly condition: PutCondition; readonly signal: AbortSignal },
  ): Promise<PutResult & { readonly bytes: number }> {
    signal.throwIfAborted();
    const store = async (): Promise<PutResult & { readonly bytes: number }> => {
      const { drafts } = this.#parts;
      const { path, etag, bytes } = await drafts.write(bodyChunks(body, signal));
      try {
        signal.throwIfAborted();
        await this.#change("commit", key, { key, condition, draft: path } satisfies CommitInput);
        return { etag, bytes };
      } finally {
        await drafts.remove(path);
      }
    };
    return await this.#ending(store(), signal, key);
  }

  /** The outcome of work on files, or the reason of the signal soon after that aborts. */
  async #ending<T>(work: Promise<T>, signal: AbortSignal, key?: string): Promise<T> {
    try {
      return await raceSignal(work, signal);
    } catch (thrown) {
      if (signal.aborted) await raceTime(work, { clock: this.#parts.clock, atMostMs: GRACE_MS });
      throw failureUnder(signal, thrown, key);
    }
  }

  /** The first objects of a list, at least as many as are wanted if there are so many. */
  async #take({
    most,
    ...where
  }: Omit<KeyWalkOptions, "folder"> & { readonly most: number }): Promise<readonly ObjectInfo[]> {
    const objects: ObjectInfo[] = [];
    for await (const some of inBatches(walkKeys({ folder: this.#parts.layout.objects, ...where }), LOOKS)) {
      const infos = await Promise.all(some.map((key) => this.#infoOf(key, where.signal)));
      objects.push(...infos.filter((info) => info !== undefined));
      if (objects.length >= most) break;
    }
    return objects;
  }

  async #change(operation: "commit" | "remove", key: string, input: unknown): Promise<void> {
    const result = (await this.#parts.thread.call(operation, input)) as CommitResult;
    if (result.kind === "failed") throw fileFailure(systemError(result), key);
    if (result.kind === "changed") {
      throw new SandboxError("OBJECT_CHANGED", `the object ${key} is not what the write expects`, {
        metadata: { key },
      });
    }
  }

  /** For lists: a file that is no object is none of ours. */
  async #infoOf(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined> {
    try {
      const object = await this.#open(key, signal);
      await object?.handle.close();
      return object && infoOf(key, object);
    } catch (thrown) {
      if (hasReason(thrown, "OBJECT_DAMAGED")) return undefined;
      throw thrown;
    }
  }

  /** Undefined if there is none. The caller closes it. */
  async #open(key: string, signal: AbortSignal): Promise<OpenObject | undefined> {
    signal.throwIfAborted();
    const opening = this.#find(key);
    try {
      return await raceSignal(opening, signal);
    } catch (thrown) {
      // What opens after the signal has no owner any more.
      opening.then((object) => object?.handle.close()).catch(() => undefined);
      throw failureUnder(signal, thrown, key);
    }
  }

  async #find(key: string): Promise<OpenObject | undefined> {
    const { layout } = this.#parts;
    try {
      return (await hasFolders(layout, key)) ? await openObject(pathOf(layout, key)) : undefined;
    } catch (thrown) {
      if (hasErrno(thrown, "ENOENT", "ENOTDIR")) return undefined;
      throw thrown;
    }
  }
}

const infoOf = (key: string, { bytes, etag, modifiedAtMs }: OpenObject): ObjectInfo => ({
  key,
  bytes,
  etag,
  modifiedAtMs,
});

/** The bytes of an object, or of a part of it, which close its file at their end. */
function sourceOf(
  object: OpenObject,
  range: GetOptions["range"],
): { readonly source: Readable; readonly bytes: number } {
  const offset = Math.min(range?.offset ?? 0, object.bytes);
  const bytes = Math.min(range?.bytes ?? object.bytes, object.bytes - offset);
  const start = HEADER_BYTES + offset;
  // A stream of a file cannot be of no bytes, so its end lies behind the last one.
  const source = object.handle.createReadStream({ start, end: Math.max(start, start + bytes - 1), autoClose: true });
  return { source: bytes === 0 ? emptied(source) : source, bytes };
}

/** Nothing, and the end of the stream that was asked for. */
function emptied(source: Readable): Readable {
  source.destroy();
  return Readable.from([]);
}

async function* inBatches<Item>(
  items: AsyncIterable<Item>,
  size: number,
): AsyncGenerator<readonly Item[], void, undefined> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Starts the worker beside this file (`.ts` from source, `.js` when built). */
async function startThread(root: string): Promise<DatabaseThread> {
  const failed = (what: string): SandboxError =>
    new SandboxError("OBJECT_STORE_UNAVAILABLE", `the directory of the object store failed: ${what}`);
  return await DatabaseThread.open({
    worker: new URL(`./commit-worker${extname(import.meta.url)}`, import.meta.url),
    data: { root },
    errors: {
      refused: ({ message }) =>
        new SandboxError("OBJECT_STORE_DENIED", `the lock of the store cannot be used: ${message}`),
      failed: ({ message }) => failed(message),
      lost: (cause) => failed(String(cause)),
      closed: () => new SandboxError("SHUTTING_DOWN", "the object store is closed"),
    },
  });
}
