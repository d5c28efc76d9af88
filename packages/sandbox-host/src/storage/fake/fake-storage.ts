import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Clock, SandboxError, systemClock } from "@turnbox/core";
import {
  baseInUse,
  baseNotFound,
  checkBase,
  checkHead,
  checkMarks,
  checkSnapshot,
  checkToken,
  headDiffers,
  headNotFound,
  sessionNotFound,
  snapshotInUse,
  snapshotNotFound,
} from "../names.ts";
import type {
  BaseInfo,
  BaseRef,
  Head,
  HeadRef,
  HeadSpec,
  Marks,
  Origin,
  SnapshotInfo,
  SnapshotRef,
  Storage,
  StorageCall,
  StorageStatus,
} from "../storage.ts";
import { createTurnstile } from "../turnstile.ts";
import { createFaultInjection, type FakeFaults, type StorageOperation } from "./fake-faults.ts";
import { bytesOnlyIn, copyFiles, filesOf } from "./fake-files.ts";

export interface FakeStorageOptions {
  /** An empty directory for the files; whoever made it removes it. */
  readonly directory: string;
  readonly clock?: Clock;
}

/** A storage for tests: an index in memory, real files in a directory, snapshots that are copies. Bounds are not enforced. */
export interface FakeStorage extends Storage {
  readonly kind: "fake";
  readonly faults: FakeFaults;
  /** What `status` answers from now on; undefined for its own. */
  setStatus(status: StorageStatus | undefined): void;
  /**
   * These heads are lost as by the death of the storage daemon: until the next `open`, which reports them, `status` is
   * `unavailable`.
   */
  loseMounts(heads: readonly HeadRef[]): void;
  /** The storage as a restarted service finds it: the same content, not opened, without faults. */
  restarted(): FakeStorage;
}

interface FakeBase {
  readonly info: BaseInfo;
  readonly directory: string;
}
interface FakeHead {
  readonly head: Head;
  readonly marks: Marks;
  readonly origin: Origin;
  mounted: "yes" | "no";
}
interface FakeSnapshot {
  readonly info: Omit<SnapshotInfo, "usedBytes">;
  readonly directory: string;
}
interface FakeSession {
  readonly marks: Marks;
  readonly heads: Map<number, FakeHead>;
  readonly snapshots: Map<string, FakeSnapshot>;
}
interface World {
  readonly bases: Map<string, FakeBase>;
  readonly sessions: Map<string, FakeSession>;
  nextDirectory: number;
  lost: readonly HeadRef[];
}

const SIZE_BYTES = 1024 ** 4;

export function createFakeStorage(options: FakeStorageOptions): FakeStorage {
  return inWorld(options, { bases: new Map(), sessions: new Map(), nextDirectory: 1, lost: [] });
}

function inWorld(options: FakeStorageOptions, world: World): FakeStorage {
  const clock = options.clock ?? systemClock;
  const faults = createFaultInjection();
  const turns = createTurnstile();
  let state: "closed" | "open" = "closed";
  let status: StorageStatus | undefined;

  /** Every operation: the caller's signal, faults, one at a time. Once begun, it runs to its end. */
  const operate = <T>(operation: StorageOperation, { signal }: StorageCall, work: () => Promise<T>): Promise<T> =>
    turns.pass(
      "all",
      () =>
        faults.around(operation, async () => {
          if (signal.aborted) throw SandboxError.from(signal.reason);
          if (state === "closed" && operation !== "open" && operation !== "destroyAll")
            throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
          return await work();
        }),
      signal,
    );
  const newDirectory = async (): Promise<string> => {
    const directory = join(options.directory, String(world.nextDirectory++));
    await mkdir(directory, { recursive: true });
    return directory;
  };
  const keyOf = ({ name, digest }: BaseRef): string => `${name}@${digest}`;
  const sessionOf = (token: string): FakeSession => {
    checkToken(token);
    const session = world.sessions.get(token);
    if (session === undefined) throw sessionNotFound();
    return session;
  };
  const headOf = (ref: HeadRef): FakeHead => {
    checkHead(ref);
    const head = world.sessions.get(ref.token)?.heads.get(ref.generation);
    if (head === undefined) throw headNotFound(ref);
    return head;
  };
  const originOf = (origin: Origin): { readonly directory: string; readonly referencedBytes: number } => {
    if (origin.kind === "base") {
      checkBase(origin.base);
      const base = world.bases.get(keyOf(origin.base));
      if (base === undefined) throw baseNotFound(origin.base);
      return { directory: base.directory, referencedBytes: base.info.referencedBytes };
    }
    checkSnapshot(origin.snapshot);
    const snapshot = world.sessions.get(origin.snapshot.token)?.snapshots.get(origin.snapshot.name);
    if (snapshot === undefined) throw snapshotNotFound();
    return { directory: snapshot.directory, referencedBytes: snapshot.info.referencedBytes };
  };
  const allHeads = (): readonly FakeHead[] => [...world.sessions.values()].flatMap(({ heads }) => [...heads.values()]);
  const dependantsOf = ({ token, name }: SnapshotRef): readonly FakeHead[] =>
    allHeads().filter(
      ({ origin }) => origin.kind === "snapshot" && origin.snapshot.token === token && origin.snapshot.name === name,
    );
  const removeLeftover = async (
    session: FakeSession,
    present: FakeHead,
    leftover: "replace" | "keep",
  ): Promise<void> => {
    const { head, mounted } = present;
    const isSealed = [...session.snapshots.values()].some(({ info }) => info.generation === head.generation);
    if (leftover === "keep" || mounted === "yes" || isSealed) throw headDiffers(head);
    await removeHead(session, present);
  };
  const addHead = async (session: FakeSession, spec: HeadSpec, leftover: "replace" | "keep"): Promise<Head> => {
    const present = session.heads.get(spec.generation);
    if (present !== undefined && isDeepStrictEqual(present.origin, spec.origin)) {
      present.mounted = "yes";
      return present.head;
    }
    if (present !== undefined) await removeLeftover(session, present, leftover);
    const { token, generation, origin, marks, refquotaBytes } = spec;
    const path = await newDirectory();
    await copyFiles(originOf(origin).directory, path);
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
  const removeHead = async (session: FakeSession, { head }: FakeHead): Promise<void> => {
    session.heads.delete(head.generation);
    for (const [name, { info, directory }] of session.snapshots) {
      if (info.generation !== head.generation) continue;
      session.snapshots.delete(name);
      await rm(directory, { recursive: true });
    }
    await rm(head.path, { recursive: true });
  };
  const bytesOf = async (session: FakeSession): Promise<number> => {
    const heads = [...session.heads.values()];
    const own = [
      ...heads.map(({ head }) => head.path),
      ...[...session.snapshots.values()].map(({ directory }) => directory),
    ];
    const bases = heads.flatMap(({ origin }) => (origin.kind === "base" ? [originOf(origin).directory] : []));
    return bytesOnlyIn(await Promise.all(own.map(filesOf)), await Promise.all(bases.map(filesOf)));
  };

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
      operate("open", call, () => {
        state = "open";
        const remounted = world.lost;
        world.lost = [];
        return Promise.resolve({ remounted });
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
        world.bases.set(keyOf(base), { info, directory });
        return info;
      }),
    listBases: (call) =>
      operate("listBases", call, () => Promise.resolve([...world.bases.values()].map(({ info }) => info))),
    destroyBase: (base, call) =>
      operate("destroyBase", call, async () => {
        checkBase(base);
        const present = world.bases.get(keyOf(base));
        if (present === undefined) return;
        if (allHeads().some(({ origin }) => origin.kind === "base" && keyOf(origin.base) === keyOf(base)))
          throw baseInUse(base);
        world.bases.delete(keyOf(base));
        await rm(present.directory, { recursive: true });
      }),
    createSession: (spec, call) =>
      operate("createSession", call, async () => {
        checkToken(spec.token);
        checkMarks(spec.marks);
        const { token, origin, marks, quotaBytes } = spec;
        const { referencedBytes } = originOf(origin);
        const refquota = quotaBytes === undefined ? {} : { refquotaBytes: referencedBytes + quotaBytes };
        const session = world.sessions.get(token) ?? { marks, heads: new Map(), snapshots: new Map() };
        const head = await addHead(session, { token, generation: 1, origin, marks, ...refquota }, "keep");
        world.sessions.set(token, session);
        return head;
      }),
    createHead: (spec, call) =>
      operate("createHead", call, async () => {
        checkHead(spec);
        checkMarks(spec.marks);
        return await addHead(sessionOf(spec.token), spec, "replace");
      }),
    mountHead: (ref, call) =>
      operate("mountHead", call, () => {
        const head = headOf(ref);
        head.mounted = "yes";
        return Promise.resolve(head.head);
      }),
    unmountHead: (ref, call) =>
      operate("unmountHead", call, () => {
        headOf(ref).mounted = "no";
        return Promise.resolve();
      }),
    destroyHead: (ref, call) =>
      operate("destroyHead", call, async () => {
        checkHead(ref);
        const session = world.sessions.get(ref.token);
        const head = session?.heads.get(ref.generation);
        if (session === undefined || head === undefined) return;
        const own = [...session.snapshots.values()].filter(({ info }) => info.generation === ref.generation);
        if (own.some(({ info }) => dependantsOf(info).length > 0)) throw snapshotInUse("the head");
        await removeHead(session, head);
      }),
    destroySession: (token, call) =>
      operate("destroySession", call, async () => {
        checkToken(token);
        const session = world.sessions.get(token);
        if (session === undefined) return;
        const dependants = [...session.snapshots.values()].flatMap(({ info }) => dependantsOf(info));
        if (dependants.some(({ head }) => head.token !== token)) throw snapshotInUse("the session");
        for (const head of [...session.heads.values()]) await removeHead(session, head);
        world.sessions.delete(token);
      }),
    seal: (ref, name, marks, call) =>
      operate("seal", call, async () => {
        checkSnapshot({ token: ref.token, name });
        checkMarks(marks);
        const { head } = headOf(ref);
        const session = sessionOf(ref.token);
        const present = session.snapshots.get(name);
        if (present !== undefined) return await snapshotInfo(session, present);
        const directory = await newDirectory();
        await copyFiles(head.path, directory);
        const referencedBytes = bytesOnlyIn([await filesOf(directory)], []);
        const { token, generation } = head;
        const snapshot = {
          info: { token, name, generation, createdAtMs: clock.nowMs(), referencedBytes, marks },
          directory,
        };
        session.snapshots.set(name, snapshot);
        return await snapshotInfo(session, snapshot);
      }),
    listSnapshots: (token, call) =>
      operate("listSnapshots", call, async () => {
        const session = sessionOf(token);
        return await Promise.all([...session.snapshots.values()].map((snapshot) => snapshotInfo(session, snapshot)));
      }),
    destroySnapshot: (ref, call) =>
      operate("destroySnapshot", call, async () => {
        checkSnapshot(ref);
        const session = world.sessions.get(ref.token);
        const snapshot = session?.snapshots.get(ref.name);
        if (session === undefined || snapshot === undefined) return;
        if (dependantsOf(ref).length > 0) throw snapshotInUse("the snapshot");
        session.snapshots.delete(ref.name);
        await rm(snapshot.directory, { recursive: true });
      }),
    usedBytes: (token, call) => operate("usedBytes", call, () => bytesOf(sessionOf(token))),
    usedBytesOfAll: (call) =>
      operate("usedBytesOfAll", call, async () => {
        const sizes = [...world.sessions].map(async ([token, session]) => [token, await bytesOf(session)] as const);
        return new Map(await Promise.all(sizes));
      }),
    inventory: (call) =>
      operate("inventory", call, () =>
        Promise.resolve(
          [...world.sessions].map(([token, { marks, heads, snapshots }]) => ({
            token,
            marks,
            heads: [...heads.values()].map(({ head, mounted, marks: own }) => ({
              token,
              generation: head.generation,
              mounted,
              marks: own,
            })),
            snapshots: [...snapshots.keys()],
          })),
        ),
      ),
    destroyAll: (call) =>
      operate("destroyAll", call, async () => {
        state = "closed";
        world.bases.clear();
        world.sessions.clear();
        await rm(options.directory, { recursive: true, force: true });
      }),
  };
}
