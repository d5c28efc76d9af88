import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Call, type Reason, randomToken, SandboxError } from "@turnbox/core";
import type { GetOptions, ObjectInfo, ObjectStore } from "../object-store.ts";

/** A store to try. It may hold objects of others already. */
export interface ObjectStoreHarness extends AsyncDisposable {
  readonly store: ObjectStore;
  /** A second adapter on the same place, as another host has. */
  other(): Promise<ObjectStore>;
  /** What takes space although it is no object: drafts, parts of uploads. */
  leftovers(): Promise<readonly string[]>;
}

export interface ObjectStoreSuiteOptions {
  /** Whether a key and keys below it can be stored together. */
  readonly nestedKeys: "stored" | "refused";
}

/** What the parts of the suite share: one store for all tests, each with keys of its own. */
export interface SuiteFixture {
  readonly options: ObjectStoreSuiteOptions;
  readonly harness: ObjectStoreHarness;
  readonly store: ObjectStore;
  /** A folder of keys that no other test uses. */
  folder(): string;
}

export const MIB = 1024 * 1024;
export const call: Call = { signal: new AbortController().signal };
const DEADLINE_MS = 120_000;

/** One promise of the port. */
export function test(what: string, body: () => Promise<void>): void {
  it(what, body, DEADLINE_MS);
}

export function createSuiteFixture(
  create: () => Promise<ObjectStoreHarness>,
  options: ObjectStoreSuiteOptions,
): SuiteFixture {
  let harness: ObjectStoreHarness | undefined;
  const made = (): ObjectStoreHarness => {
    if (harness === undefined) throw new Error("the object store could not be made");
    return harness;
  };
  beforeAll(async () => {
    harness = await create();
  }, DEADLINE_MS);
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]();
  }, DEADLINE_MS);
  return {
    options,
    get harness() {
      return made();
    },
    get store() {
      return made().store;
    },
    folder: () => `suite/${randomToken(12)}`,
  };
}

export async function read(store: ObjectStore, key: string, options: GetOptions = {}): Promise<Buffer> {
  const { body } = await store.get(key, options, call);
  return Buffer.concat((await body.toArray()) as Buffer[]);
}

export async function readText(store: ObjectStore, key: string, options: GetOptions = {}): Promise<string> {
  return (await read(store, key, options)).toString();
}

/** All pages of a list, and how many they were. */
export async function listAll(
  store: ObjectStore,
  prefix: string,
  limit?: number,
): Promise<{ readonly objects: readonly ObjectInfo[]; readonly pages: number }> {
  const objects: ObjectInfo[] = [];
  for (let pages = 1; ; pages += 1) {
    const after = objects.at(-1)?.key;
    const page = await store.list(
      prefix,
      { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) },
      call,
    );
    objects.push(...page.objects);
    if (!page.more || page.objects.length === 0) return { objects, pages };
  }
}

export async function expectReason(promise: Promise<unknown>, reason: Reason): Promise<SandboxError> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(SandboxError);
  expect(thrown).toMatchObject({ reason });
  return thrown as SandboxError;
}

/** Chunks of chance, made while they are asked for, and the digest of all that were. */
export class Noise implements AsyncIterable<Uint8Array> {
  readonly #bytes: number;
  readonly #hash = createHash("sha256");
  #given = 0;
  #ended = false;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  get given(): number {
    return this.#given;
  }

  /** Whether its reader has ended it, or read all of it. */
  get ended(): boolean {
    return this.#ended;
  }

  get digest(): string {
    return this.#hash.copy().digest("hex");
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      // No multiple of a part or of a buffer.
      for (const most = 1_000_003; this.#given < this.#bytes; ) {
        const chunk = randomBytes(Math.min(most, this.#bytes - this.#given));
        this.#given += chunk.byteLength;
        this.#hash.update(chunk);
        yield chunk;
      }
    } finally {
      this.#ended = true;
    }
  }
}
