import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Clock, KeyedMutex, namingAborts, SandboxError, Semaphore, systemClock } from "@turnbox/core";
import { Leases } from "../leases.ts";
import {
  baseInUse,
  checkBase,
  checkHead,
  checkMarks,
  checkNewSnapshot,
  checkPoint,
  checkSnapshot,
  checkToken,
  firstRefquota,
  headDiffers,
  isViewSnapshot,
  newViewName,
  snapshotInUse,
  viewSnapshotName,
} from "../names.ts";
import type {
  Head,
  HeadRef,
  HeadSpec,
  Marks,
  Origin,
  SessionInventory,
  SnapshotInfo,
  Storage,
  StorageCall,
  StorageStatus,
} from "../storage.ts";
import { type Point, type View, VIEWS_AT_ONCE } from "../views.ts";
import { collectHeads, isPinned, shrinkPinned } from "./fake-dependencies.ts";
import { createFaultInjection, type FakeFaults, type StorageOperation } from "./fake-faults.ts";
import { bytesOnlyIn, copyFiles, describeFiles, filesOf } from "./fake-files.ts";
import { dropReceivedBases, FakeStreams } from "./fake-streams.ts";
import {
  allHeads,
  baseOfHead,
  type FakeHead,
  type FakeSession,
  type FakeSnapshot,
  type FakeView,
  headOf,
  isDescendant,
  isUsed,
  keyOf,
  newGuid,
  originOf,
  removeHead,
  removeSnapshot,
  sessionOf,
  snapshotOf,
  snapshotsOn,
  type World,
} from "./fake-world.ts";

export interface FakeStorageOptions {
  /** An empty directory for the files; its maker removes it. */
  readonly directory: string;
  readonly clock?: Clock;
  /** How long a stream may stand still. Default a minute. */
  readonly streamPatienceMs?: number;
}

/** A storage for tests: an index in memory, real files in a directory, snapshots that are copies. Bounds are not enforced. */
export interface FakeStorage extends Storage {
  readonly kind: "fake";
  readonly faults: FakeFaults;
  /** What `status` returns from now on; undefined for its own. */
  setStatus(status: StorageStatus | undefined): void;
  /**
   * These heads are lost as by the death of the storage daemon: until the next `open`, which reports them, `status` is
   * `unavailable`.
   */
  loseMounts(heads: readonly HeadRef[]): void;
  /** The storage as a restarted service finds it: the same content, not opened, without faults. */
  restarted(): FakeStorage;
}

const SIZE_BYTES = 1024 ** 4;
const NEVER = new AbortController().signal;

export function createFakeStorage(options: FakeStorageOptions): FakeStorage {
  return inWorld(options, {
    bases: new Map(),
    receivedBases: new Map(),
    sessions: new Map(),
    views: new Set(),
    leases: new Leases(),
    nextDirectory: 1,
    lost: [],
  });
}

function inWorld(options: FakeStorageOptions, world: World): FakeStorage {
  const clock = options.clock ?? systemClock;
  const faults = createFaultInjection();
  const turns = new KeyedMutex();
  const instance = {};
  const permits = new Semaphore(VIEWS_AT_ONCE);
  let state: "closed" | "open" = "closed";
  let status: StorageStatus | undefined;

  /** Every operation: the caller's signal, faults, one at a time. Once begun, it runs to its end. */
  const operate = <T>(operation: StorageOperation, { signal }: StorageCall, work: () => Promise<T>): Promise<T> =>
    namingAborts(
      turns.run(
        "all",
        () =>
          faults.around(operation, async () => {
            if (signal.aborted) throw SandboxError.from(signal.reason);
            if (state === "closed" && operation !== "open" && operation !== "destroyAll")
              throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
            return await work();
          }),
        signal,
      ),
    );
  const newDirectory = async (): Promise<string> => {
    const directory = join(options.directory, String(world.nextDirectory++));
    await mkdir(directory, { recursive: true });
    return directory;
  };
  const removeLeftover = async (
    session: FakeSession,
    present: FakeHead,
    leftover: "replace" | "keep",
  ): Promise<void> => {
    const { head, mounted } = present;
    const isSealed = snapshotsOn(session, head.generation).length > 0;
    if (leftover === "keep" || mounted === "yes" || isSealed) throw headDiffers(head);
    await removeHead(session, present);
  };
  const addHead = async (session: FakeSession, spec: HeadSpec, leftover: "replace" | "keep"): Promise<Head> => {
    const present = session.heads.get(spec.generation);
    if (present !== undefined && cameFrom(session, present, spec.origin)) {
      present.mounted = "yes";
      return present.head;
    }
    if (present !== undefined) await removeLeftover(session, present, leftover);
    const { token, generation, origin, marks, refquotaBytes } = spec;
    const path = await newDirectory();
    await copyFiles(originOf(world, origin).directory, path);
    const head = { token, generation, path, ...(refquotaBytes === undefined ? {} : { refquotaBytes }) };
    session.heads.set(generation, { head, marks, origin, mounted: "yes" });
    return head;
  };
  const snapshotInfo = async (session: FakeSession, { info, directory }: FakeSnapshot): Promise<SnapshotInfo> => {
    const others = [
      ...[...session.heads.values()].map(({ head }) => head.path),
      ...[...session.snapshots.values()].map((snapshot) => snapshot.directory).filter((path) => path !== directory),
    ];
    return { ...info, usedBytes: bytesOnlyIn([await filesOf(directory)], await Promise.all(others.map(filesOf))) };
  };
  const bytesOf = async (session: FakeSession): Promise<number> => {
    const heads = [...session.heads.values()];
    const own = [
      ...heads.map(({ head }) => head.path),
      ...[...session.snapshots.values()].map(({ directory }) => directory),
    ];
    const bases = heads.flatMap((head) => baseOfHead(world, head)?.directory ?? []);
    return bytesOnlyIn(await Promise.all(own.map(filesOf)), await Promise.all(bases.map(filesOf)));
  };

  const journalsOf = (token: string): string => join(options.directory, "journals", token);
  const removeJournals = (token: string): Promise<void> => rm(journalsOf(token), { recursive: true, force: true });
  const removeSession = async (token: string, session: FakeSession): Promise<void> => {
    await removeJournals(token);
    const bases = [...session.heads.values()].flatMap(({ receivedBase }) => receivedBase ?? []);
    for (const head of [...session.heads.values()]) await removeHead(session, head);
    world.sessions.delete(token);
    await dropReceivedBases(world, bases);
  };
  const takeSnapshot = async (ref: HeadRef, name: string, marks: Marks): Promise<FakeSnapshot> => {
    const { token, generation, path } = headOf(world, ref).head;
    const directory = await newDirectory();
    await copyFiles(path, directory);
    const referencedBytes = bytesOnlyIn([await filesOf(directory)], []);
    const snapshot = {
      info: { token, name, generation, createdAtMs: clock.nowMs(), referencedBytes, marks },
      directory,
      guid: newGuid(),
    };
    sessionOf(world, token).snapshots.set(name, snapshot);
    return snapshot;
  };
  const endView = async (view: FakeView): Promise<void> => {
    const { token, name } = view.snapshot;
    world.views.delete(view);
    const session = world.sessions.get(token);
    const snapshot = session?.snapshots.get(name);
    if (session === undefined || snapshot === undefined) return;
    if (isViewSnapshot(name) && !isUsed(world, view.snapshot, "anything")) await removeSnapshot(session, snapshot);
  };
  const openView = async (point: Point, release: () => void): Promise<View> => {
    checkPoint(point);
    const { info, directory } =
      point.kind === "snapshot"
        ? snapshotOf(world, point.snapshot)
        : await takeSnapshot(point.head, viewSnapshotName(newViewName()), {});
    const view = { snapshot: { token: info.token, name: info.name }, owner: instance };
    world.views.add(view);
    const end = async (): Promise<void> => {
      await turns.run("all", () => endView(view), NEVER);
      release();
    };
    return { path: directory, snapshot: view.snapshot, [Symbol.asyncDispose]: end };
  };

  const streams = new FakeStreams({
    world,
    clock,
    newDirectory,
    patienceMs: options.streamPatienceMs ?? 60_000,
    inTurn: ({ signal }, work) =>
      namingAborts(
        turns.run(
          "all",
          async () => {
            if (signal.aborted) throw SandboxError.from(signal.reason);
            if (state === "closed") throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
            return await work();
          },
          signal,
        ),
      ),
  });

  const seal: FakeStorage["seal"] = (ref, name, marks, call) =>
    operate("seal", call, async () => {
      checkNewSnapshot({ token: ref.token, name });
      checkMarks(marks);
      if (!sessionOf(world, ref.token).snapshots.has(name)) await takeSnapshot(ref, name, marks);
    });

  return {
    kind: "fake",
    capabilities: { snapshots: "supported" },
    faults,
    setStatus: (answer) => {
      status = answer;
    },
    loseMounts: (heads) => {
      world.lost = heads.map(({ token, generation }) => ({ token, generation }));
    },
    restarted: () => inWorld(options, world),
    open: (call) =>
      operate("open", call, async () => {
        if (state === "closed") await dropReceivedBases(world, [...world.receivedBases.keys()]);
        state = "open";
        const remounted = world.lost;
        if (remounted.length > 0) await call.onRemounted?.(remounted);
        world.lost = [];
        for (const view of [...world.views].filter(({ owner }) => owner !== instance)) await endView(view);
        return { remounted };
      }),
    status: (call) =>
      operate("status", call, () =>
        Promise.resolve(
          status ?? {
            state: world.lost.length === 0 ? "online" : "unavailable",
            detail: "fake",
            sizeBytes: SIZE_BYTES,
            usedBytes: 0,
            availableBytes: SIZE_BYTES,
          },
        ),
      ),
    createBase: (base, fill, call) =>
      operate("createBase", call, async () => {
        checkBase(base);
        const present = world.bases.get(keyOf(base));
        if (present !== undefined) return present.info;
        const directory = await newDirectory();
        try {
          await fill(directory);
        } catch (thrown) {
          await rm(directory, { recursive: true });
          throw thrown;
        }
        const referencedBytes = bytesOnlyIn([await filesOf(directory)], []);
        const info = { name: base.name, digest: base.digest, createdAtMs: clock.nowMs(), referencedBytes };
        world.bases.set(keyOf(base), { info, directory, guid: newGuid() });
        return info;
      }),
    listBases: (call) =>
      operate("listBases", call, () => Promise.resolve([...world.bases.values()].map(({ info }) => info))),
    destroyBase: (base, call) =>
      operate("destroyBase", call, async () => {
        checkBase(base);
        const present = world.bases.get(keyOf(base));
        if (present === undefined) return;
        const isOn = (head: FakeHead): boolean => baseOfHead(world, head) === present;
        if (world.leases.has(keyOf(base)) || allHeads(world).some(isOn)) throw baseInUse(base);
        world.bases.delete(keyOf(base));
        await rm(present.directory, { recursive: true });
      }),
    createSession: (spec, call) =>
      operate("createSession", call, async () => {
        checkToken(spec.token);
        checkMarks(spec.marks);
        const { token, origin, marks } = spec;
        const refquotaBytes = firstRefquota(spec, originOf(world, origin).referencedBytes);
        const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
        const session = world.sessions.get(token) ?? { marks, heads: new Map(), snapshots: new Map() };
        const head = await addHead(session, { token, generation: 1, origin, marks, ...refquota }, "keep");
        world.sessions.set(token, session);
        return head;
      }),
    createHead: (spec, call) =>
      operate("createHead", call, async () => {
        checkHead(spec);
        checkMarks(spec.marks);
        return await addHead(sessionOf(world, spec.token), spec, "replace");
      }),
    boundSession: (bound, call) =>
      operate("boundSession", call, () => {
        sessionOf(world, bound.token);
        const present = headOf(world, { token: bound.token, generation: 1 });
        const { refquotaBytes: _, ...unbounded } = present.head;
        const refquotaBytes = firstRefquota(bound, originOf(world, bound.origin).referencedBytes);
        present.head = { ...unbounded, ...(refquotaBytes === undefined ? {} : { refquotaBytes }) };
        return Promise.resolve(present.head);
      }),
    mountHead: (ref, call) =>
      operate("mountHead", call, () => {
        const head = headOf(world, ref);
        head.mounted = "yes";
        return Promise.resolve(head.head);
      }),
    unmountHead: (ref, call) =>
      operate("unmountHead", call, () => {
        headOf(world, ref).mounted = "no";
        return Promise.resolve();
      }),
    destroyHead: (ref, call) =>
      operate("destroyHead", call, async () => {
        checkHead(ref);
        const session = world.sessions.get(ref.token);
        const head = session?.heads.get(ref.generation);
        if (session === undefined || head === undefined) return;
        const own = snapshotsOn(session, ref.generation);
        if (own.some(({ info }) => isUsed(world, info, "anything"))) throw snapshotInUse("the head");
        await removeHead(session, head);
      }),
    destroySession: (token, call) =>
      operate("destroySession", call, async () => {
        checkToken(token);
        const session = world.sessions.get(token);
        if (session === undefined) return;
        if (isPinned(world, session)) throw snapshotInUse("the session");
        await removeSession(token, session);
      }),
    shrinkSession: (token, call) =>
      operate("shrinkSession", call, async () => {
        checkToken(token);
        const session = world.sessions.get(token);
        if (session === undefined) return;
        await removeJournals(token);
        await (isPinned(world, session) ? shrinkPinned(world, token) : removeSession(token, session));
      }),
    collectHeads: (keep, call) => operate("collectHeads", call, () => collectHeads(world, keep)),
    markSession: (token, marks, call) =>
      operate("markSession", call, () => {
        checkMarks(marks);
        const session = sessionOf(world, token);
        session.marks = { ...session.marks, ...marks };
        return Promise.resolve();
      }),
    seal,
    streams,
    prewarm: {
      prepareSeal: (ref) => ({ take: (name, marks, call) => seal(ref, name, marks, call) }),
    },
    listSnapshots: (token, call) =>
      operate("listSnapshots", call, async () => {
        const session = sessionOf(world, token);
        const listed = [...session.snapshots.values()].filter(({ info }) => !isViewSnapshot(info.name));
        return await Promise.all(listed.map((snapshot) => snapshotInfo(session, snapshot)));
      }),
    destroySnapshot: (ref, call) =>
      operate("destroySnapshot", call, async () => {
        checkSnapshot(ref);
        const session = world.sessions.get(ref.token);
        const snapshot = session?.snapshots.get(ref.name);
        if (session === undefined || snapshot === undefined) return;
        if (isUsed(world, ref, "anything")) throw snapshotInUse("the snapshot");
        await removeSnapshot(session, snapshot);
      }),
    isUnchanged: (snapshot, since, call) =>
      operate("isUnchanged", call, async () => {
        const trees = [snapshotOf(world, since), snapshotOf(world, snapshot)];
        if (!isDescendant(world, since, snapshot)) return false;
        const [before, after] = await Promise.all(trees.map(({ directory }) => describeFiles(directory)));
        return isDeepStrictEqual(before, after);
      }),
    openView: async (point, call) => {
      const permit = await namingAborts(permits.acquire(call.signal));
      const release = (): void => {
        permit[Symbol.dispose]();
      };
      try {
        return await operate("openView", call, () => openView(point, release));
      } catch (thrown) {
        release();
        throw thrown;
      }
    },
    changedPaths: (from, to, call) =>
      operate("changedPaths", call, () => {
        checkSnapshot(from);
        checkSnapshot(to);
        return Promise.resolve(null);
      }),
    usedBytes: (token, call) => operate("usedBytes", call, () => bytesOf(sessionOf(world, token))),
    headBytes: (head, call) =>
      operate("headBytes", call, async () => bytesOnlyIn([await filesOf(headOf(world, head).head.path)], [])),
    usedBytesOfAll: (call) =>
      operate("usedBytesOfAll", call, async () => {
        const sizes = [...world.sessions].map(async ([token, session]) => [token, await bytesOf(session)] as const);
        return new Map(await Promise.all(sizes));
      }),
    presence: (call) => operate("presence", call, () => Promise.resolve(listSessions(world))),
    inventory: (call) => operate("inventory", call, () => Promise.resolve(listSessions(world))),
    openJournals: ({ token }, call) =>
      operate("openJournals", call, async () => {
        sessionOf(world, token);
        await mkdir(journalsOf(token), { recursive: true, mode: 0o700 });
        return { path: journalsOf(token), touch: "directly" };
      }),
    flush: (call) => operate("flush", call, () => Promise.resolve()),
    destroyAll: (call) =>
      operate("destroyAll", call, async () => {
        state = "closed";
        world.bases.clear();
        world.receivedBases.clear();
        world.sessions.clear();
        world.views.clear();
        await rm(options.directory, { recursive: true, force: true });
      }),
  };
}

function listSessions({ sessions }: World): readonly SessionInventory[] {
  return [...sessions].map(([token, { marks, heads, snapshots }]) => ({
    token,
    marks,
    heads: [...heads.values()].map(({ head, mounted, marks: own }) => ({
      token,
      generation: head.generation,
      mounted,
      marks: own,
    })),
    snapshots: [...snapshots.keys()].filter((name) => !isViewSnapshot(name)),
  }));
}

/** By what it was made from; one that was promoted holds its origin itself. */
function cameFrom(session: FakeSession, { head, origin: present }: FakeHead, origin: Origin): boolean {
  if (isDeepStrictEqual(present, origin)) return true;
  if (origin.kind === "base" || origin.snapshot.token !== head.token) return false;
  return session.snapshots.get(origin.snapshot.name)?.info.generation === head.generation;
}
