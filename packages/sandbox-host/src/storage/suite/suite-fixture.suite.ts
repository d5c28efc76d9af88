import { randomBytes } from "node:crypto";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Reason, randomToken, SandboxError } from "@turnbox/core";
import type { BaseRef, Head, Marks, Origin, SessionInventory, Storage, StorageCall } from "../storage.ts";

/** A storage to try, opened. Its paths are paths of the test process. */
export interface StorageHarness extends AsyncDisposable {
  readonly storage: Storage;
  /** A second adapter on the same place, as a service has after a restart. Not opened. */
  restarted(): Storage;
}

export interface StorageSuiteOptions {
  /** Whether bounds are kept by the backend. If not, they are only remembered. */
  readonly quota: "enforced" | "remembered";
  /** Whether heads can be unmounted, and a user keeps them from it. */
  readonly mounts: "real" | "pretended" | "none";
  /** Whether snapshots can be sent and received; a stream that stands still ends within some seconds then. */
  readonly streams: "offered" | "none";
}

export interface NewSession {
  readonly base?: BaseRef;
  readonly quotaBytes?: number;
  readonly refquotaBytes?: number;
  readonly marks?: Marks;
}

/** What the parts of the suite share: one storage for all tests, each with tokens and templates of its own. */
export interface SuiteFixture {
  readonly options: StorageSuiteOptions;
  readonly storage: Storage;
  restarted(): Storage;
  newBase(files?: Readonly<Record<string, string>>): Promise<BaseRef>;
  newSession(more?: NewSession): Promise<Head>;
  /** A session from a snapshot of another one. */
  forkOf(head: Head, snapshot: string, more?: Omit<NewSession, "base">): Promise<Head>;
  cloneOf(head: Head, snapshot: string, generation: number): Promise<Head>;
  found(token: string): Promise<SessionInventory | undefined>;
  /** A test about snapshots; if there are none, the same operations are refused. */
  testSnapshots(what: string, body: () => Promise<void>): void;
}

export const MIB = 1024 * 1024;
const DEADLINE_MS = 60_000;
export const call: StorageCall = { signal: new AbortController().signal };

/** One promise of the port. */
export function test(what: string, body: () => Promise<void>): void {
  it(what, body, DEADLINE_MS);
}

export function createSuiteFixture(create: () => Promise<StorageHarness>, options: StorageSuiteOptions): SuiteFixture {
  let harness: StorageHarness | undefined;
  beforeAll(async () => {
    harness = await create();
  }, DEADLINE_MS);
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]();
  }, DEADLINE_MS);
  const made = (): StorageHarness => {
    if (harness === undefined) throw new Error("the storage could not be made");
    return harness;
  };

  const newBase: SuiteFixture["newBase"] = async (files = { hello: "from the base" }) => {
    const base = { name: randomToken(8), digest: hexDigest() };
    await made().storage.createBase(base, (directory) => writeFiles(directory, files), call);
    return base;
  };
  const newSession: SuiteFixture["newSession"] = async (more = {}) => {
    const { base = await newBase(), marks = {}, ...rest } = more;
    const origin: Origin = { kind: "base", base };
    return await made().storage.createSession({ token: randomToken(12), origin, marks, ...rest }, call);
  };
  const expectRefusals = async (): Promise<void> => {
    const { storage } = made();
    const { token } = await newSession();
    const snapshot = { token, name: "s" };
    const origin: Origin = { kind: "snapshot", snapshot };
    const refused = "SNAPSHOTS_NOT_AVAILABLE";
    await expectReason(storage.seal({ token, generation: 1 }, "s", {}, call), refused);
    await expectReason(storage.listSnapshots(token, call), refused);
    await expectReason(storage.destroySnapshot(snapshot, call), refused);
    await expectReason(storage.createHead({ token, generation: 2, origin, marks: {} }, call), refused);
    await expectReason(storage.createSession({ token: randomToken(12), origin, marks: {} }, call), refused);
    await expectReason(storage.isUnchanged(snapshot, snapshot, call), refused);
    await expectReason(storage.changedPaths(snapshot, snapshot, call), refused);
    await expectReason(storage.openView({ kind: "head", head: { token, generation: 1 } }, call), refused);
    expect(await storage.collectHeads({ token, generation: 1 }, call)).toEqual([]);
  };
  return {
    options,
    get storage() {
      return made().storage;
    },
    restarted: () => made().restarted(),
    newBase,
    newSession,
    forkOf: ({ token }, name, more = {}) =>
      made().storage.createSession(
        { token: randomToken(12), origin: { kind: "snapshot", snapshot: { token, name } }, marks: {}, ...more },
        call,
      ),
    cloneOf: ({ token }, name, generation) =>
      made().storage.createHead(
        { token, generation, origin: { kind: "snapshot", snapshot: { token, name } }, marks: {} },
        call,
      ),
    found: async (token) => (await made().storage.inventory(call)).find((session) => session.token === token),
    testSnapshots: (what, body) => {
      test(what, async () => {
        await (made().storage.capabilities.snapshots === "supported" ? body() : expectRefusals());
      });
    },
  };
}

export async function expectReason(promise: Promise<unknown>, reason: Reason): Promise<void> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(SandboxError);
  expect(thrown).toMatchObject({ reason });
}

/** Repeats until it passes, for what a backend accounts for only some time later. */
export async function eventually(attempt: () => Promise<void>): Promise<void> {
  const deadlineMs = performance.now() + 40_000;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (thrown) {
      if (performance.now() > deadlineMs) throw thrown;
      await delay(100);
    }
  }
}

export async function writeFiles(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
}

/** Bytes that do not compress. */
export async function writeNoise(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "w");
  for (let written = 0; written < bytes; written += MIB) await file.write(randomBytes(MIB));
  await file.sync();
}

export function hexDigest(): string {
  return randomBytes(32).toString("hex");
}
