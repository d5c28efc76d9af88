import { type Clock, type CommandRunner, KeyedMutex, namingAborts, SandboxError, systemClock } from "@turnbox/core";
import type { JournalDirectory, JournalsSpec } from "../journals.ts";
import { Leases } from "../leases.ts";
import type { PreparedSeal, Prewarm } from "../prewarm.ts";
import type {
  BaseInfo,
  BaseRef,
  Head,
  HeadRef,
  HeadSpec,
  Marks,
  SessionBound,
  SessionInventory,
  SessionPresence,
  SessionSpec,
  SnapshotInfo,
  SnapshotRef,
  Storage,
  StorageCall,
  StorageStatus,
} from "../storage.ts";
import type { Streams } from "../streams.ts";
import type { Point, View } from "../views.ts";
import { createBase, destroyBase, listBases } from "./bases.ts";
import { boundSession } from "./bound-session.ts";
import { changedPaths } from "./changed-paths.ts";
import { collectHeads, shrinkSession } from "./dependencies.ts";
import { createHead, destroyHead, headBytes, mountHead, unmountHead } from "./heads.ts";
import { destroyHome, flushHome, prepareHome } from "./home.ts";
import { openJournals } from "./journals.ts";
import { checkLayoutNames, type LayoutNames } from "./layout-names.ts";
import { MOUNT_LOCK_PATH } from "./mount-lock.ts";
import { Mounts } from "./mounts.ts";
import { openPool } from "./open-pool.ts";
import { createPoolGate, type PoolGate } from "./pool-gate.ts";
import {
  createSession,
  destroySession,
  inventory,
  joinSessions,
  markSession,
  usedBytes,
  usedBytesOfAll,
} from "./sessions.ts";
import { destroySnapshot, listSnapshots, prepareSeal, seal } from "./snapshots.ts";
import { createStatusProbe } from "./status.ts";
import { sweepReceivedBases } from "./stream/received-bases.ts";
import { ZfsStreams } from "./stream/zfs-streams.ts";
import { isUnchanged } from "./unchanged.ts";
import { sweepViewSnapshots } from "./view-datasets.ts";
import { createOpenViews, type OpenViews } from "./open-views.ts";
import { ZfsCommand } from "./zfs-command.ts";
import { UNDO_DEADLINE_MS, type ZfsLimits, type ZfsPool, type ZfsTools } from "./zfs-pool.ts";

export interface ZfsStorageOptions extends LayoutNames {
  readonly runner: CommandRunner;
  /** The home. Its pool, named after the home's real path, lives in `<home>/pool/pool.img`. */
  readonly home: string;
  /** The size of a pool that has to be made; the file is sparse. One that is there keeps its size. */
  readonly poolSizeBytes: number;
  /** The directory that heads are mounted below. Default `<home>/mnt`. */
  readonly mountRoot?: string;
  readonly clock?: Clock;
  /** For each command that has no deadline of its own. Default 20 s. */
  readonly commandDeadlineMs?: number;
  /** The mount table of the namespace that the commands run in. Default `/proc/self/mountinfo`. */
  readonly mountTablePath?: string;
  readonly limits?: Partial<ZfsLimits>;
}

const DEFAULT_LIMITS: ZfsLimits = {
  quotaFactor: 3,
  busyPatienceMs: 3000,
  destroyPatienceMs: 15_000,
  resetPatienceMs: 60_000,
  flushDeadlineMs: 30_000,
  streamPatienceMs: 60_000,
};

type Work<T> = (pool: ZfsPool, call: StorageCall) => Promise<T>;

/** Sessions as clones in a ZFS pool of the home's own, on OpenZFS 2 or zfs-fuse 0.7. */
export class ZfsStorage implements Storage {
  readonly kind = "zfs";
  readonly capabilities = { snapshots: "supported" } as const;
  readonly prewarm: Prewarm = { prepareSeal: (head, call) => this.#prepareSeal(head, call) };
  readonly streams: Streams;

  readonly #options: ZfsStorageOptions;
  readonly #tools: ZfsTools;
  readonly #mutex = new KeyedMutex();
  readonly #gate: PoolGate;
  readonly #views: OpenViews;
  readonly #readStatus: (signal: AbortSignal) => Promise<StorageStatus>;
  /** Undefined until the storage is opened, and once it is destroyed. */
  #pool: ZfsPool | undefined;

  constructor(options: ZfsStorageOptions) {
    checkLayoutNames(options);
    const clock = options.clock ?? systemClock;
    const zfs = new ZfsCommand({
      runner: options.runner,
      clock,
      deadlineMs: options.commandDeadlineMs ?? 20_000,
      mountLockPath: MOUNT_LOCK_PATH,
    });
    const mounts = new Mounts({ zfs, clock, mountTablePath: options.mountTablePath ?? "/proc/self/mountinfo" });
    this.#options = options;
    this.#tools = { zfs, mounts, clock, limits: { ...DEFAULT_LIMITS, ...options.limits }, leases: new Leases() };
    this.#gate = createPoolGate(clock);
    this.#views = createOpenViews({
      run: (call, work) => this.#run(call, work),
      runForSession: (token, call, work) => this.#runForSession(token, call, work),
    });
    this.streams = new ZfsStreams({
      run: (call, work) => this.#run(call, work),
      runForSession: (token, call, work) => this.#runForSession(token, call, work),
      runForBase: (base, call, work) => this.#runForBase(base, call, work),
      runKeyed: (key, call, work) => this.#runKeyed(key, call, work),
    });
    this.#readStatus = createStatusProbe(() => ({ pool: this.#opened(), gate: this.#gate.state }));
  }

  open({ signal, onRemounted }: Parameters<Storage["open"]>[0]): ReturnType<Storage["open"]> {
    return namingAborts(
      this.#mutex.run(
        "open",
        async () => {
          const layout = await prepareHome(this.#options);
          const { poolSizeBytes } = this.#options;
          const opening = { tools: this.#tools, layout, poolSizeBytes, gate: this.#gate, liveViews: this.#views.live };
          const { pool, remounted } = await openPool({ ...opening, onRemounted }, signal);
          const isFirst = this.#pool === undefined;
          this.#pool = pool;
          if (isFirst) await sweepReceivedBases(pool, { signal });
          this.#gate.open();
          return { remounted };
        },
        signal,
      ),
    );
  }

  async status({ signal }: StorageCall): Promise<StorageStatus> {
    return await this.#readStatus(signal);
  }

  createBase(base: BaseRef, fill: (directory: string) => Promise<void>, call: StorageCall): Promise<BaseInfo> {
    return this.#runForBase(base, call, (pool, inner) => createBase(pool, base, { ...inner, fill }));
  }

  listBases(call: StorageCall): Promise<readonly BaseInfo[]> {
    return this.#run(call, listBases);
  }

  destroyBase(base: BaseRef, call: StorageCall): Promise<void> {
    return this.#runForBase(base, call, (pool, inner) => destroyBase(pool, base, inner));
  }

  createSession(spec: SessionSpec, call: StorageCall): Promise<Head> {
    return this.#runForSession(spec.token, call, (pool, inner) => createSession(pool, spec, inner));
  }

  createHead(spec: HeadSpec, call: StorageCall): Promise<Head> {
    return this.#runForSession(spec.token, call, (pool, inner) => createHead(pool, spec, inner));
  }

  boundSession(bound: SessionBound, call: StorageCall): Promise<Head> {
    return this.#runForSession(bound.token, call, (pool, inner) => boundSession(pool, bound, inner));
  }

  mountHead(head: HeadRef, call: StorageCall): Promise<Head> {
    return this.#runForSession(head.token, call, (pool, inner) => mountHead(pool, head, inner));
  }

  unmountHead(head: HeadRef, call: StorageCall): Promise<void> {
    return this.#runForSession(head.token, call, (pool, inner) => unmountHead(pool, head, inner));
  }

  destroyHead(head: HeadRef, call: StorageCall): Promise<void> {
    return this.#runForSession(head.token, call, (pool, inner) => destroyHead(pool, head, inner));
  }

  destroySession(token: string, call: StorageCall): Promise<void> {
    return this.#runForSession(token, call, (pool, inner) => destroySession(pool, token, inner));
  }

  shrinkSession(token: string, call: StorageCall): Promise<void> {
    return this.#runForSession(token, call, (pool, inner) => shrinkSession(pool, token, inner));
  }

  collectHeads(keep: HeadRef, call: StorageCall): Promise<readonly HeadRef[]> {
    return this.#runForSession(keep.token, call, (pool, inner) => collectHeads(pool, keep, inner));
  }

  seal(head: HeadRef, name: string, marks: Marks, call: StorageCall): Promise<void> {
    return this.#runForSession(head.token, call, (pool, { signal }) =>
      seal(pool, head, { name, marks, room: () => prepareSeal(pool, head, signal), signal }),
    );
  }

  listSnapshots(token: string, call: StorageCall): Promise<readonly SnapshotInfo[]> {
    return this.#run(call, (pool, inner) => listSnapshots(pool, token, inner));
  }

  destroySnapshot(snapshot: SnapshotRef, call: StorageCall): Promise<void> {
    return this.#runForSession(snapshot.token, call, (pool, inner) => destroySnapshot(pool, snapshot, inner));
  }

  isUnchanged(snapshot: SnapshotRef, since: SnapshotRef, call: StorageCall): Promise<boolean> {
    return this.#runForSession(snapshot.token, call, (pool, inner) => isUnchanged(pool, snapshot, { ...inner, since }));
  }

  openView(point: Point, call: StorageCall): Promise<View> {
    return this.#views.open(point, call);
  }

  changedPaths(from: SnapshotRef, to: SnapshotRef, call: StorageCall): Promise<readonly string[] | null> {
    return this.#runForSession(to.token, call, (pool, inner) => changedPaths(pool, from, { ...inner, to }));
  }

  markSession(token: string, marks: Marks, call: StorageCall): Promise<void> {
    return this.#runForSession(token, call, (pool, inner) => markSession(pool, token, { ...inner, marks }));
  }

  usedBytes(token: string, call: StorageCall): Promise<number> {
    return this.#run(call, (pool, inner) => usedBytes(pool, token, inner));
  }

  headBytes(head: HeadRef, call: StorageCall): Promise<number> {
    return this.#run(call, (pool, inner) => headBytes(pool, head, inner));
  }

  usedBytesOfAll(call: StorageCall): Promise<ReadonlyMap<string, number>> {
    return this.#run(call, usedBytesOfAll);
  }

  presence(call: StorageCall): Promise<readonly SessionPresence[]> {
    return this.#run(call, async (pool, { signal }) => {
      const names = await pool.datasets.ownNames(pool.layout.sessions, signal);
      const sweep = this.#run({ signal: AbortSignal.timeout(UNDO_DEADLINE_MS) }, (again, inner) =>
        sweepViewSnapshots(again, { names, live: this.#views.live, signal: inner.signal }),
      );
      // What is left is found by the next one.
      sweep.catch(() => undefined);
      return await joinSessions(pool, names);
    });
  }

  inventory(call: StorageCall): Promise<readonly SessionInventory[]> {
    return this.#run(call, inventory);
  }

  openJournals(spec: JournalsSpec, call: StorageCall): Promise<JournalDirectory> {
    return this.#runForSession(spec.token, call, (pool, inner) => openJournals(pool, spec, inner));
  }

  flush(call: StorageCall): Promise<void> {
    return this.#run(call, flushHome);
  }

  destroyAll({ signal }: StorageCall): Promise<void> {
    return namingAborts(
      this.#mutex.run(
        "open",
        async () => {
          await this.#gate.close();
          this.#pool = undefined;
          await destroyHome(this.#options, this.#tools, signal);
        },
        signal,
      ),
    );
  }

  #prepareSeal(head: HeadRef, call: StorageCall): PreparedSeal {
    const room = this.#run(call, (pool, { signal }) => prepareSeal(pool, head, signal));
    room.catch(() => undefined);
    return {
      take: (name, marks, takeCall) =>
        this.#runForSession(head.token, takeCall, (pool, { signal }) =>
          seal(pool, head, { name, marks, room: () => room, signal }),
        ),
    };
  }

  #opened(): ZfsPool {
    if (this.#pool === undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
    return this.#pool;
  }

  /** Every operation: fails while the pool is closed, and ends when it is closed under way. */
  #run<T>(call: StorageCall, work: Work<T>): Promise<T> {
    return this.#gate.run(call.signal, async (signal) => await work(this.#opened(), { signal }));
  }

  /** The same, one at a time for each session. */
  #runForSession<T>(token: string, call: StorageCall, work: Work<T>): Promise<T> {
    return this.#runKeyed(`session ${token}`, call, work);
  }

  #runForBase<T>({ name, digest }: BaseRef, call: StorageCall, work: Work<T>): Promise<T> {
    return this.#runKeyed(`base ${name}@${digest}`, call, work);
  }

  #runKeyed<T>(key: string, call: StorageCall, work: Work<T>): Promise<T> {
    return this.#run(call, (pool, inner) => namingAborts(this.#mutex.run(key, () => work(pool, inner), inner.signal)));
  }
}
