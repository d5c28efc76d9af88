import { createHash } from "node:crypto";
import { access, chmod, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type CommandRunner, SandboxError, systemClock } from "@turnbox/core";
import type { Storage, StorageCall } from "../storage.ts";
import { createTurnstile } from "../turnstile.ts";
import { createBase, destroyBase, listBases } from "./bases.ts";
import { type DaemonOptions, ensureDaemon, findDaemon } from "./daemon.ts";
import { createDatasets } from "./datasets.ts";
import { detectFlavor } from "./flavor.ts";
import { createHead, destroyHead, mountHead, unmountHead } from "./heads.ts";
import { createLayout } from "./layout.ts";
import { createMounts, type MountTarget } from "./mounts.ts";
import { destroyPool, ensurePool, readPoolStatus } from "./pool.ts";
import { createSession, destroySession, inventory, usedBytes } from "./sessions.ts";
import { destroySnapshot, listSnapshots, seal } from "./snapshots.ts";
import { createZfsCommand } from "./zfs-command.ts";
import type { ZfsLimits, ZfsRoom } from "./zfs-room.ts";

export interface ZfsStorageOptions {
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
  flushDeadlineMs: 30_000,
};

/** Sessions as clones in a ZFS pool of the home's own, on OpenZFS 2 or zfs-fuse 0.7. */
export function createZfsStorage(options: ZfsStorageOptions): Storage {
  const turns = createTurnstile();
  let room: ZfsRoom | undefined;

  const opened = (): ZfsRoom => {
    if (room === undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
    return room;
  };
  const ofSession = <T>(token: string, { signal }: StorageCall, work: (room: ZfsRoom) => Promise<T>): Promise<T> =>
    turns.pass(`session ${token}`, () => work(opened()), signal);
  const ofBase = <T>(name: string, { signal }: StorageCall, work: (room: ZfsRoom) => Promise<T>): Promise<T> =>
    turns.pass(`base ${name}`, () => work(opened()), signal);

  return {
    kind: "zfs",
    capabilities: { snapshots: "supported" },
    open: (call) =>
      turns.pass(
        "open",
        async () => {
          room = await openRoom(options, call.signal);
        },
        call.signal,
      ),
    status: async ({ signal }) => {
      const { zfs, layout } = opened();
      return await readPoolStatus(zfs, layout, signal);
    },
    createBase: (base, fill, call) =>
      ofBase(`${base.name}@${base.digest}`, call, (r) => createBase(r, base, { ...call, fill })),
    listBases: async (call) => await listBases(opened(), call),
    destroyBase: (base, call) => ofBase(`${base.name}@${base.digest}`, call, (r) => destroyBase(r, base, call)),
    createSession: (spec, call) => ofSession(spec.token, call, (r) => createSession(r, spec, call)),
    createHead: (spec, call) => ofSession(spec.token, call, (r) => createHead(r, spec, call)),
    mountHead: (head, call) => ofSession(head.token, call, (r) => mountHead(r, head, call)),
    unmountHead: (head, call) => ofSession(head.token, call, (r) => unmountHead(r, head, call)),
    destroyHead: (head, call) => ofSession(head.token, call, (r) => destroyHead(r, head, call)),
    destroySession: (token, call) => ofSession(token, call, (r) => destroySession(r, token, call)),
    seal: (head, name, marks, call) => ofSession(head.token, call, (r) => seal(r, head, { ...call, name, marks })),
    listSnapshots: async (token, call) => await listSnapshots(opened(), token, call),
    destroySnapshot: (snapshot, call) => ofSession(snapshot.token, call, (r) => destroySnapshot(r, snapshot, call)),
    usedBytes: async (token, call) => await usedBytes(opened(), token, call),
    inventory: async (call) => await inventory(opened(), call),
    destroyAll: (call) =>
      turns.pass(
        "open",
        async () => {
          room = undefined;
          await destroyAll(options, call.signal);
        },
        call.signal,
      ),
  };
}

interface Parts extends Pick<ZfsRoom, "zfs" | "layout" | "mounts" | "clock" | "limits"> {
  readonly daemon: DaemonOptions;
}

async function createParts(options: ZfsStorageOptions): Promise<Parts> {
  const clock = options.clock ?? systemClock;
  await mkdir(options.home, { recursive: true, mode: 0o700 });
  const home = await realpath(options.home);
  const poolDirectory = join(home, "pool");
  await mkdir(poolDirectory, { recursive: true, mode: 0o700 });
  const mountRoot = await makeMountRoot(options.mountRoot ?? join(home, "mnt"));
  const homeId = createHash("sha256").update(home).digest("hex").slice(0, 32);
  const layout = createLayout({ homeId, poolDirectory, mountRoot });
  const zfs = createZfsCommand({ runner: options.runner, clock, deadlineMs: options.commandDeadlineMs ?? 20_000 });
  const mounts = createMounts({ zfs, clock, mountTablePath: options.mountTablePath ?? "/proc/self/mountinfo" });
  const daemon = { zfs, mounts, clock, directory: poolDirectory, mountRoot };
  return { zfs, layout, mounts, clock, daemon, limits: { ...DEFAULT_LIMITS, ...options.limits } };
}

async function openRoom(options: ZfsStorageOptions, signal: AbortSignal): Promise<ZfsRoom> {
  const { daemon, ...parts } = await createParts(options);
  const { zfs, layout, clock } = parts;
  const flavor = await detectFlavor(zfs, signal);
  const lost = flavor === "zfs-fuse" ? await ensureDaemon(daemon, signal) : [];
  await ensurePool({ zfs, layout, sizeBytes: options.poolSizeBytes }, signal);
  const room = { ...parts, flavor, datasets: createDatasets({ zfs, layout, clock, flavor }) };
  await mountAgain(room, lost, signal);
  return room;
}

/** The pool goes first: while anything of it is in use, all stays. */
async function destroyAll(options: ZfsStorageOptions, signal: AbortSignal): Promise<void> {
  if (!(await exists(options.home))) return;
  const { zfs, layout, mounts, clock, daemon, limits } = await createParts(options);
  const flavor = await detectFlavor(zfs, signal);
  const patience = { clock, flavor, patienceMs: limits.destroyPatienceMs, signal };
  if (flavor === "openzfs" || (await findDaemon(daemon, signal)) === "present") {
    for (const { source, path } of await mounts.below(layout.mountRoot)) {
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

/** Passable for the sandbox's users, listable for none of them: the names below are not theirs to see. */
async function makeMountRoot(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o711);
  return await realpath(path);
}

/** Mounts what was mounted before the daemon died, one by one. */
async function mountAgain(room: ZfsRoom, lost: readonly MountTarget[], signal: AbortSignal): Promise<void> {
  const paths: string[] = [];
  for (const head of new Map(lost.map((target) => [target.path, target])).values()) {
    if (!head.dataset.startsWith(`${room.layout.sessions}/`)) continue;
    if ((await room.datasets.find(head.dataset, signal)) === undefined) continue;
    await room.mounts.mount(head, signal);
    paths.push(head.path);
  }
  const alive = await room.mounts.answering(paths, signal);
  const silent = paths.filter((path) => !alive.has(path));
  if (silent.length > 0)
    throw new SandboxError(
      "STORAGE_UNAVAILABLE",
      `${silent.length} of ${paths.length} heads do not answer after a mount`,
    );
}
