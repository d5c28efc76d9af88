import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { BaseRef, Head, SnapshotRef, Storage } from "../storage.ts";
import type { ChainLink, ReceivedSnapshot, Streams } from "../streams.ts";
import { call, hexDigest, type StorageHarness, type StorageSuiteOptions, writeFiles } from "./suite-fixture.suite.ts";

/** What tests of streams share: a storage that sends and another that receives. */
export interface StreamFixture {
  readonly options: StorageSuiteOptions;
  readonly here: Storage;
  readonly there: Storage;
  /** The receiving storage as a restarted service finds it. */
  restarted(): Storage;
}

export const DEADLINE_MS = 60_000;

export function createStreamFixture(
  create: () => Promise<StorageHarness>,
  options: StorageSuiteOptions,
): StreamFixture {
  const made: StorageHarness[] = [];
  beforeAll(async () => {
    for (const _ of ["here", "there"]) made.push(await create());
  }, DEADLINE_MS);
  afterAll(async () => {
    for (const harness of made) await harness[Symbol.asyncDispose]();
  }, DEADLINE_MS);
  const nth = (index: number): StorageHarness => {
    const harness = made[index];
    if (harness === undefined) throw new Error("the storages could not be made");
    return harness;
  };
  return {
    options,
    get here() {
      return nth(0).storage;
    },
    get there() {
      return nth(1).storage;
    },
    restarted: () => nth(1).restarted(),
  };
}

export function streamsOf({ streams }: Storage): Streams {
  if (streams === undefined) throw new Error("this storage has no streams");
  return streams;
}

export async function newBase(storage: Storage, files: Readonly<Record<string, string>> = {}): Promise<BaseRef> {
  const base = { name: randomToken(8), digest: hexDigest() };
  await storage.createBase(base, (directory) => writeFiles(directory, { hello: "from the base", ...files }), call);
  return base;
}

/** A session with some snapshots, each with a file of its own. */
export async function newSession(storage: Storage, seals: readonly string[], base?: BaseRef): Promise<Head> {
  const origin = { kind: "base", base: base ?? (await newBase(storage)) } as const;
  const head = await storage.createSession({ token: randomToken(12), origin, marks: {} }, call);
  for (const name of seals) await sealed(storage, head, name);
  return head;
}

export async function sealed(storage: Storage, head: Head, name: string): Promise<void> {
  await writeFile(join(head.path, "at"), name);
  await writeFile(join(head.path, `file-${name}`), name.repeat(100));
  await storage.seal(head, unique(head, name), { name, turn: "1\t2" }, call);
}

/** Names of snapshots are unique in a pool. */
export function unique({ token }: { readonly token: string }, name: string): string {
  return `${token}-${name}`;
}

export function refOf(head: { readonly token: string }, name: string): SnapshotRef {
  return { token: head.token, name: unique(head, name) };
}

/** A snapshot as bytes, and how it is announced to the receiver. */
export interface Sent {
  readonly link: ChainLink;
  readonly bytes: Buffer;
}

export async function sendAll(storage: Storage, token: string): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  for (const link of await streamsOf(storage).chain(token, call)) {
    const stream = await streamsOf(storage).send({ token, name: link.name }, link.parent, call);
    sent.push({ link, bytes: await buffer(stream) });
  }
  return sent;
}

/** What `receive` gets for a snapshot that goes into the session `token`. */
export function announced(token: string, { link }: Pick<Sent, "link">): ReceivedSnapshot {
  const name = `${token}-${link.name.split("-").at(-1) ?? ""}`;
  const { guid, parent } = link;
  return { token, name, guid, parentGuid: parent?.guid ?? null, marks: { of: link.name, odd: "a\nb" }, format: "zfs" };
}

/** The bytes as a stream that comes in parts. */
export function streamOf(bytes: Buffer, partBytes = 50_000): Readable {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += partBytes) parts.push(bytes.subarray(at, at + partBytes));
  return Readable.from(parts, { objectMode: false });
}

/** A stream that has delivered so many of the bytes and then says nothing. */
export function stuckAfter(bytes: Buffer, count: number): PassThrough {
  const stream = new PassThrough({ highWaterMark: bytes.length });
  stream.write(bytes.subarray(0, count));
  return stream;
}

export async function receiveBases(from: Storage, to: Storage, sent: readonly Pick<Sent, "link">[]): Promise<void> {
  for (const { link } of sent) {
    if (link.parent?.of.kind !== "base") continue;
    const { base } = link.parent.of;
    const { guid } = link.parent;
    if (await streamsOf(to).hasBase(base, guid, call)) continue;
    const { stream } = await streamsOf(from).sendBase({ ...base, guid }, call);
    await streamsOf(to).receiveBase(base, guid, stream, call);
  }
}

/** Receives all into a new session. Returns its token and the names of its snapshots by their names where they came from. */
export async function receiveAll(to: Storage, sent: readonly Sent[]) {
  const token = randomToken(12);
  await streamsOf(to).beginSession({ token, marks: { copied: "yes" } }, call);
  const names = new Map<string, string>();
  for (const one of sent) {
    const wanted = announced(token, one);
    await streamsOf(to).receive(wanted, streamOf(one.bytes), call);
    names.set(one.link.name, wanted.name);
  }
  return { token, names };
}

export async function copySession(from: Storage, to: Storage, token: string) {
  const sent = await sendAll(from, token);
  await receiveBases(from, to, sent);
  return { ...(await receiveAll(to, sent)), sent };
}

/** What the files of a snapshot are, as a view of it shows them. */
export async function filesAt(storage: Storage, snapshot: SnapshotRef): Promise<readonly string[]> {
  await using view = await storage.openView({ kind: "snapshot", snapshot }, call);
  return await describeTree(view.path);
}

export async function describeTree(root: string): Promise<readonly string[]> {
  const names = ["", ...(await readdir(root, { recursive: true })).sort()];
  const lines: string[] = [];
  for (const name of names) {
    const path = join(root, name);
    const found = await lstat(path);
    const facts = [name, found.mode, found.uid, found.gid, Math.round(found.mtimeMs / 1000)];
    if (found.isSymbolicLink()) facts.push(await readlink(path));
    else if (found.isFile()) {
      const sum = createHash("sha256").update(await readFile(path));
      facts.push(found.size, found.nlink, sum.digest("hex"));
    } else if (found.isBlockDevice() || found.isCharacterDevice()) facts.push(found.rdev);
    lines.push(facts.join("\0"));
  }
  return lines;
}

/** All snapshots of a copy hold what those that they came from hold. */
export async function expectSame(
  from: Storage,
  to: Storage,
  copy: { readonly token: string; readonly names: ReadonlyMap<string, string>; readonly sent: readonly Sent[] },
  token: string,
): Promise<void> {
  for (const { link } of copy.sent) {
    const name = copy.names.get(link.name) ?? "";
    expect(await filesAt(to, { token: copy.token, name })).toEqual(await filesAt(from, { token, name: link.name }));
  }
}
