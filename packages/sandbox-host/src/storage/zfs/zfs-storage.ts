import { access } from "node:fs/promises";
import { type Clock, type CommandRunner, SandboxError, systemClock } from "@turnbox/core";
import { KeyedMutex } from "../../async/keyed-mutex.ts";
import type { BaseRef, Storage, StorageCall } from "../storage.ts";
import { createBase, destroyBase, listBases } from "./bases.ts";
import { boundSession } from "./bound-session.ts";
import { changedPaths } from "./changed-paths.ts";
import { findDaemon } from "./daemon.ts";
import { collectHeads, shrinkSession } from "./dependencies.ts";
import { detectFlavor } from "./flavor.ts";
import { flushAll } from "./flush-all.ts";
import { createHead, destroyHead, headBytes, mountHead, unmountHead } from "./heads.ts";
import { openJournals } from "./journals.ts";
import { checkLayoutNames, type LayoutNames } from "./layout-names.ts";
import { MOUNT_LOCK_PATH } from "./mount-lock.ts";
import { createMounts } from "./mounts.ts";
import { openPool } from "./open-pool.ts";
import { createPoolGate } from "./pool-gate.ts";
import { destroyPool } from "./pool.ts";
import { prepareHome } from "./prepare-home.ts";
import {
  createSession,
  destroySession,
  inventory,
  joinSessions,
  markSession,
  usedBytes,
  usedBytesOfAll,
} from "./sessions.ts";
import { destroySnapshot, flush, listSnapshots, seal } from "./snapshots.ts";
import { createStatusProbe } from "./status.ts";
import { isUnchanged } from "./unchanged.ts";
import { sweepViewSnapshots } from "./view-datasets.ts";
import { createViews } from "./views.ts";
import { createZfsCommand } from "./zfs-command.ts";
import { UNDO_DEADLINE_MS, type ZfsLimits, type ZfsPool, type ZfsTools } from "./zfs-pool.ts";

export interface ZfsStorageOptions extends LayoutNames {
  readonly runner: CommandRunner;
  /** The home. Its pool, named after the home's real path, lives in `<home>/pool/pool.img`. */
  readonly home: string;
  /** The size of a pool that has to be made; the file is sparse. One that is there keeps its size. */
  readonly poolSizeBytes: number;
  /** Where heads are mounted. Default `<home>/mnt`. */
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
};

/** Sessions as clones in a ZFS pool of the home's own, on OpenZFS 2 or zfs-fuse 0.7. */
export function createZfsStorage(options: ZfsStorageOptions): Storage {
  checkLayoutNames(options);
  const clock = options.clock ?? systemClock;
  const zfs = createZfsCommand({
    runner: options.runner,
    clock,
    deadlineMs: options.commandDeadlineMs ?? 20_000,
    mountLockPath: MOUNT_LOCK_PATH,
  });
  const mounts = createMounts({ zfs, clock, mountTablePath: options.mountTablePath ?? "/proc/self/mountinfo" });
  const tools: ZfsTools = { zfs, mounts, clock, limits: { ...DEFAULT_LIMITS, ...options.limits } };
  const turns = new KeyedMutex();
  const gate = createPoolGate(clock);
  let pool: ZfsPool | undefined;

  const opened = (): ZfsPool => {
    if (pool === undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
    return pool;
  };
  type Work<T> = (pool: ZfsPool, call: StorageCall) => Promise<T>;
  const look = async <T>(call: StorageCall, work: Work<T>): Promise<T> =>
    await gate.run(call.signal, (signal) => work(opened(), { signal }));
  const inTurn = <T>(key: string, call: StorageCall, work: Work<T>): Promise<T> =>
    look(call, (r, inner) => turns.run(key, () => work(r, inner), inner.signal));
  const ofSession = <T>(token: string, call: StorageCall, work: Work<T>): Promise<T> =>
    inTurn(`session ${token}`, call, work);
  const ofBase = <T>({ name, digest }: BaseRef, call: StorageCall, work: Work<T>): Promise<T> =>
    inTurn(`base ${name}@${digest}`, call, work);
  const views = createViews({ look, inTurnOf: ofSession });
  const readStatus = createStatusProbe(() => ({ pool: opened(), gate: gate.state }));

  return {
    kind: "zfs",
    capabilities: { snapshots: "supported" },
    open: ({ signal, onRemounted }) =>
      turns.run(
        "open",
        async () => {
          const layout = await prepareHome(options);
          const { poolSizeBytes } = options;
          const liveViews = views.live;
          const opening = { tools, layout, poolSizeBytes, gate, liveViews, onRemounted };
          const open = await openPool(opening, signal);
          pool = open.pool;
          gate.open();
          return { remounted: open.remounted };
        },
        signal,
      ),
    status: async ({ signal }) => await readStatus(signal),
    createBase: (base, fill, call) => ofBase(base, call, (r, c) => createBase(r, base, { ...c, fill })),
    listBases: (call) => look(call, listBases),
    destroyBase: (base, call) => ofBase(base, call, (r, c) => destroyBase(r, base, c)),
    createSession: (spec, call) => ofSession(spec.token, call, (r, c) => createSession(r, spec, c)),
    createHead: (spec, call) => ofSession(spec.token, call, (r, c) => createHead(r, spec, c)),
    boundSession: (bound, call) => ofSession(bound.token, call, (r, c) => boundSession(r, bound, c)),
    mountHead: (head, call) => ofSession(head.token, call, (r, c) => mountHead(r, head, c)),
    unmountHead: (head, call) => ofSession(head.token, call, (r, c) => unmountHead(r, head, c)),
    destroyHead: (head, call) => ofSession(head.token, call, (r, c) => destroyHead(r, head, c)),
    destroySession: (token, call) => ofSession(token, call, (r, c) => destroySession(r, token, c)),
    flushHead: (head, call) => look(call, (r, c) => flush(r, head, c.signal)),
    seal: (head, name, marks, call) =>
      ofSession(head.token, call, (r, c) => seal(r, head, { ...call, ...c, name, marks })),
    listSnapshots: (token, call) => look(call, (r, c) => listSnapshots(r, token, c)),
    destroySnapshot: (snapshot, call) => ofSession(snapshot.token, call, (r, c) => destroySnapshot(r, snapshot, c)),
    shrinkSession: (token, call) => ofSession(token, call, (r, c) => shrinkSession(r, token, c)),
    collectHeads: (keep, call) => ofSession(keep.token, call, (r, c) => collectHeads(r, keep, c)),
    isUnchanged: (snapshot, since, call) =>
      ofSession(snapshot.token, call, (r, c) => isUnchanged(r, snapshot, { ...call, ...c, since })),
    openView: (point, call) => views.open(point, call),
    changedPaths: (from, to, call) => ofSession(to.token, call, (r, c) => changedPaths(r, from, { ...c, to })),
    markSession: (token, marks, call) => ofSession(token, call, (r, c) => markSession(r, token, { ...c, marks })),
    usedBytes: (token, call) => look(call, (r, c) => usedBytes(r, token, c)),
    headBytes: (head, call) => look(call, (r, c) => headBytes(r, head, c)),
    usedBytesOfAll: (call) => look(call, usedBytesOfAll),
    presence: (call) =>
      look(call, async (r, c) => {
        const names = await r.datasets.ownNames(r.layout.sessions, c.signal);
        const sweep = look({ signal: AbortSignal.timeout(UNDO_DEADLINE_MS) }, (again, { signal }) =>
          sweepViewSnapshots(again, { names, live: views.live, signal }),
        );
        // What is left is found by the next one.
        sweep.catch(() => undefined);
        return await joinSessions(r, names);
      }),
    inventory: (call) => look(call, inventory),
    openJournals: (spec, call) => ofSession(spec.token, call, (r, c) => openJournals(r, spec, c)),
    flush: (call) => look(call, flushAll),
    destroyAll: ({ signal }) =>
      turns.run(
        "open",
        async () => {
          await gate.close();
          pool = undefined;
          await destroyAll(options, tools, signal);
        },
        signal,
      ),
  };
}

/** The pool goes first: while anything of it is in use, all stays. */
async function destroyAll(
  options: ZfsStorageOptions,
  { zfs, mounts, clock, limits }: ZfsTools,
  signal: AbortSignal,
): Promise<void> {
  if (!(await exists(options.home))) return;
  const layout = await prepareHome(options);
  const flavor = await detectFlavor(zfs, signal);
  const patience = { clock, flavor, patienceMs: limits.resetPatienceMs, signal };
  if (flavor === "openzfs" || (await findDaemon({ zfs, mounts, clock, layout }, signal)) === "present") {
    for (const { source, path } of mounts.below(layout.mountRoot)) {
      if (source.startsWith(`${layout.pool}/`)) await mounts.unmount({ dataset: source, path }, patience);
    }
    await destroyPool({ zfs, layout }, patience);
  }
  const args = ["-rf", "--one-file-system", "--", layout.poolDirectory, layout.mountRoot];
  await zfs.read("removing the pool's directories", { program: "rm", args }, signal);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
