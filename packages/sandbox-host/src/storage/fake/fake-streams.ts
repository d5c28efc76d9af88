import { rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Clock, invalidArgument, SandboxError } from "@turnbox/core";
import {
  baseNotFound,
  checkBase,
  checkGuid,
  checkMarks,
  checkNewSnapshot,
  checkToken,
  isViewSnapshot,
  snapshotNotFound,
  streamDamaged,
} from "../names.ts";
import { ProgressWatch } from "../progress-watch.ts";
import type { BaseRef, SnapshotRef, StorageCall } from "../storage.ts";
import { FrameWriter } from "../stream-frames.ts";
import type { ChainLink, ReceivedSession, ReceivedSnapshot, StreamFormat, StreamParent, Streams } from "../streams.ts";
import { bytesOnlyIn, filesOf, packFiles, unpackFiles } from "./fake-files.ts";
import { type FakePayload, readPayload } from "./fake-payload.ts";
import {
  allHeads,
  baseOfHead,
  type FakeBase,
  type FakeHead,
  type FakeSession,
  type FakeSnapshot,
  keyOf,
  leaseKeyOf,
  sessionOf,
  snapshotOf,
  snapshotsOn,
  type World,
} from "./fake-world.ts";

export interface FakeStreamsOptions {
  readonly world: World;
  readonly clock: Clock;
  readonly patienceMs: number;
  readonly newDirectory: () => Promise<string>;
  /** One at a time, while the storage is open. */
  readonly inTurn: <T>(call: StorageCall, work: () => Promise<T>) => Promise<T>;
}

/** Where a received snapshot comes from. */
type Parent = { readonly snapshot: FakeSnapshot } | { readonly base: FakeBase } | null;

/** Streams that carry whole trees, in frames as all streams. */
export class FakeStreams implements Streams {
  readonly writes: StreamFormat = "fake";
  readonly reads: readonly StreamFormat[] = ["fake"];
  readonly #options: FakeStreamsOptions;

  constructor(options: FakeStreamsOptions) {
    this.#options = options;
  }

  async chain(token: string, call: StorageCall): Promise<readonly ChainLink[]> {
    const { world, inTurn } = this.#options;
    return await inTurn(call, () => {
      const session = sessionOf(world, token);
      const own = [...session.snapshots.values()].filter(({ info }) => !isViewSnapshot(info.name));
      const links = own.map((snapshot) => ({
        name: snapshot.info.name,
        guid: snapshot.guid,
        parent: parentOf(world, session, snapshot),
      }));
      return Promise.resolve(links);
    });
  }

  async send(ref: SnapshotRef, parent: StreamParent | null, call: StorageCall): Promise<Readable> {
    const { world, inTurn } = this.#options;
    return await inTurn(call, async () => {
      const snapshot = snapshotOf(world, ref);
      if (parent !== null) this.#checkParent(parent);
      using leases = new DisposableStack();
      leases.use(world.leases.take(leaseKeyOf(ref)));
      if (parent?.of.kind === "snapshot") leases.use(world.leases.take(leaseKeyOf(parent.of.snapshot)));
      const { guid, directory, info } = snapshot;
      const files = await packFiles(directory);
      const payload = { guid, parentGuid: parent?.guid ?? null, createdAtMs: info.createdAtMs, files };
      return this.#write(payload, { leases: leases.move(), call });
    });
  }

  async sendBase(
    base: BaseRef & { readonly guid?: string },
    call: StorageCall,
  ): Promise<{ readonly guid: string; readonly stream: Readable }> {
    const { world, inTurn } = this.#options;
    return await inTurn(call, async () => {
      const found = this.#bases(base).find(({ guid }) => base.guid === undefined || guid === base.guid);
      if (found === undefined) throw baseNotFound(base);
      using leases = new DisposableStack();
      leases.use(world.leases.take(keyOf(base)));
      const { guid, directory, info } = found;
      const payload = { guid, parentGuid: null, createdAtMs: info.createdAtMs, files: await packFiles(directory) };
      return { guid, stream: this.#write(payload, { leases: leases.move(), call }) };
    });
  }

  async baseGuid(base: BaseRef, call: StorageCall): Promise<string | undefined> {
    return await this.#options.inTurn(call, () => Promise.resolve(this.#bases(base)[0]?.guid));
  }

  async hasBase(base: BaseRef, guid: string, call: StorageCall): Promise<boolean> {
    checkGuid(guid);
    const has = (): boolean => this.#bases(base).some((found) => found.guid === guid);
    return await this.#options.inTurn(call, () => Promise.resolve(has()));
  }

  async receiveBase(base: BaseRef, guid: string, stream: Readable, call: StorageCall): Promise<void> {
    const { world, inTurn, newDirectory } = this.#options;
    await owning(stream, async () => {
      if (await this.hasBase(base, guid, call)) return;
      const payload = await this.#read(stream, { guid, parentGuid: null, signal: call.signal });
      await inTurn(call, async () => {
        const directory = await newDirectory();
        await unpackFiles(payload.files, directory);
        const referencedBytes = bytesOnlyIn([await filesOf(directory)], []);
        const { name, digest } = base;
        const info = { name, digest, createdAtMs: payload.createdAtMs, referencedBytes };
        world.receivedBases.set(guid, { info, directory, guid });
      });
    });
  }

  async beginSession({ token, marks }: ReceivedSession, call: StorageCall): Promise<void> {
    const { world, inTurn } = this.#options;
    checkToken(token);
    checkMarks(marks);
    await inTurn(call, () => {
      if (!world.sessions.has(token)) world.sessions.set(token, { marks, heads: new Map(), snapshots: new Map() });
      return Promise.resolve();
    });
  }

  async receive(wanted: ReceivedSnapshot, stream: Readable, call: StorageCall): Promise<void> {
    const { world, inTurn } = this.#options;
    await owning(stream, async () => {
      checkNewSnapshot(wanted);
      checkMarks(wanted.marks);
      checkGuid(wanted.guid);
      const present = await inTurn(call, () => Promise.resolve(this.#present(wanted)));
      if (present === "here") return;
      const { guid, parentGuid } = wanted;
      const payload = await this.#read(stream, { guid, parentGuid, signal: call.signal });
      await inTurn(call, async () => {
        if (this.#present(wanted) === "here") return;
        const session = sessionOf(world, wanted.token);
        await this.#add(session, wanted, payload);
      });
    });
  }

  /** Refuses what cannot be received, before anything is read. */
  #present({ token, name, guid, parentGuid }: ReceivedSnapshot): "here" | "absent" {
    const session = sessionOf(this.#options.world, token);
    const same = [...session.snapshots.values()].find((snapshot) => snapshot.guid === guid);
    if (same !== undefined && same.info.name !== name)
      throw invalidArgument("snapshot", "this one is here already, under another name");
    if (same !== undefined) return "here";
    if (session.snapshots.has(name)) throw invalidArgument("snapshot", "the name is that of another snapshot");
    this.#findParent(session, parentGuid);
    return "absent";
  }

  async #add(session: FakeSession, wanted: ReceivedSnapshot, payload: FakePayload): Promise<void> {
    const { newDirectory } = this.#options;
    const { token, name, guid, marks, parentGuid } = wanted;
    const parent = this.#findParent(session, parentGuid);
    const [directory, path] = [await newDirectory(), await newDirectory()];
    for (const target of [directory, path]) await unpackFiles(payload.files, target);
    const generation = await this.#headFor(session, { token, parent, path });
    const referencedBytes = bytesOnlyIn([await filesOf(directory)], []);
    const info = { token, name, generation, createdAtMs: payload.createdAtMs, referencedBytes, marks };
    session.snapshots.set(name, { info, directory, guid });
  }

  /** The head of received snapshots that ends at the parent, with the new files; else a further one. */
  async #headFor(
    session: FakeSession,
    { token, parent, path }: { readonly token: string; readonly parent: Parent; readonly path: string },
  ): Promise<number> {
    const last = parent !== null && "snapshot" in parent ? parent.snapshot.info : undefined;
    const present = last === undefined ? undefined : session.heads.get(last.generation);
    const ends = last !== undefined && snapshotsOn(session, last.generation).at(-1)?.info.name === last.name;
    let generation = 1;
    if (present?.received === true && present.mounted === "no" && ends) {
      await rm(present.head.path, { recursive: true });
      generation = present.head.generation;
      present.head = { ...present.head, path };
      return generation;
    }
    while (session.heads.has(generation)) generation += 1;
    const head: FakeHead = {
      head: { token, generation, path },
      marks: {},
      mounted: "no",
      received: true,
      ...originOf(parent),
    };
    session.heads.set(generation, head);
    return generation;
  }

  #findParent(session: FakeSession, guid: string | null): Parent {
    if (guid === null) return null;
    const { world } = this.#options;
    const snapshot = [...session.snapshots.values()].find((one) => one.guid === guid);
    if (snapshot !== undefined) return { snapshot };
    const base = [...world.bases.values(), ...world.receivedBases.values()].find((one) => one.guid === guid);
    if (base === undefined) throw snapshotNotFound();
    return { base };
  }

  #bases(base: BaseRef): readonly FakeBase[] {
    checkBase(base);
    const { bases, receivedBases } = this.#options.world;
    return [...bases.values(), ...receivedBases.values()].filter(({ info }) => keyOf(info) === keyOf(base));
  }

  #checkParent({ guid, of }: StreamParent): void {
    checkGuid(guid);
    const isThere =
      of.kind === "base"
        ? this.#bases(of.base).some((base) => base.guid === guid)
        : snapshotOf(this.#options.world, of.snapshot).guid === guid;
    if (!isThere) throw snapshotNotFound();
  }

  async #read(
    stream: Readable,
    expected: StorageCall & Pick<ReceivedSnapshot, "guid" | "parentGuid">,
  ): Promise<FakePayload> {
    const { clock, patienceMs } = this.#options;
    const payload = await readPayload(stream, { clock, patienceMs, signal: expected.signal });
    if (payload.guid !== expected.guid || payload.parentGuid !== expected.parentGuid)
      throw streamDamaged("it is of another snapshot, or an increment of another one");
    return payload;
  }

  #write(
    payload: FakePayload,
    { leases, call }: { readonly leases: DisposableStack; readonly call: StorageCall },
  ): Readable {
    const { clock, patienceMs } = this.#options;
    const watch = leases.use(
      new ProgressWatch({
        clock,
        patienceMs,
        onStall: () => {
          writer.destroy(new SandboxError("STORAGE_UNAVAILABLE", "sending a snapshot stood still"));
        },
      }),
    );
    const onProgress = (): void => {
      watch.note();
    };
    const writer = new FrameWriter({ beforeEnd: () => Promise.resolve(), onProgress });
    writer.on("error", () => undefined);
    const onAbort = (): void => {
      writer.destroy(SandboxError.from(call.signal.reason));
    };
    call.signal.addEventListener("abort", onAbort, { once: true });
    leases.defer(() => {
      call.signal.removeEventListener("abort", onAbort);
    });
    pipeline(chunksOf(Buffer.from(JSON.stringify(payload))), writer).then(
      () => {
        leases.dispose();
      },
      () => {
        leases.dispose();
      },
    );
    return writer;
  }
}

/** Destroys those of the received bases that nothing stands on any more. */
export async function dropReceivedBases(world: World, guids: readonly string[]): Promise<void> {
  const used = new Set(allHeads(world).map(({ receivedBase }) => receivedBase));
  for (const guid of new Set(guids)) {
    const base = world.receivedBases.get(guid);
    if (base === undefined || used.has(guid)) continue;
    world.receivedBases.delete(guid);
    await rm(base.directory, { recursive: true });
  }
}

function parentOf(world: World, session: FakeSession, { info }: FakeSnapshot): StreamParent | null {
  const earlier = snapshotsOn(session, info.generation).filter((one) => !isViewSnapshot(one.info.name));
  const before = earlier[earlier.findIndex((one) => one.info.name === info.name) - 1];
  const toParent = (snapshot: FakeSnapshot): StreamParent => {
    const { token, name } = snapshot.info;
    return { guid: snapshot.guid, of: { kind: "snapshot", snapshot: { token, name } } };
  };
  if (before !== undefined) return toParent(before);
  const head = session.heads.get(info.generation);
  if (head === undefined) return null;
  if (head.origin.kind === "snapshot") return toParent(snapshotOf(world, head.origin.snapshot));
  const base = baseOfHead(world, head);
  if (base === undefined) return null;
  return { guid: base.guid, of: { kind: "base", base: { name: base.info.name, digest: base.info.digest } } };
}

function originOf(parent: Parent): Pick<FakeHead, "origin" | "receivedBase"> {
  if (parent === null) return { origin: { kind: "base", base: { name: "none", digest: "0" } } };
  if ("snapshot" in parent) {
    const { token, name } = parent.snapshot.info;
    return { origin: { kind: "snapshot", snapshot: { token, name } } };
  }
  const { name, digest } = parent.base.info;
  return { origin: { kind: "base", base: { name, digest } }, receivedBase: parent.base.guid };
}

/** The stream ends with the call, also if the call never came to read it. */
async function owning(stream: Readable, work: () => Promise<void>): Promise<void> {
  stream.on("error", () => undefined);
  try {
    await work();
  } finally {
    stream.destroy();
  }
}

function* chunksOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  const CHUNK_BYTES = 16 * 1024;
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}
