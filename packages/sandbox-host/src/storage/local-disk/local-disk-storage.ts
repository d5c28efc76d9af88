import { chmod, mkdir, realpath, rename, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type CommandRunner, randomToken, SandboxError, systemClock } from "@turnbox/core";
import { KeyedMutex } from "../../async/keyed-mutex.ts";
import {
  baseInUse,
  baseNotFound,
  checkBase,
  checkHead,
  checkMarks,
  checkToken,
  firstRefquota,
  headDiffers,
  headNotFound,
  sessionNotFound,
} from "../names.ts";
import type {
  BaseInfo,
  BaseRef,
  Head,
  HeadRef,
  HeadSpec,
  Origin,
  SessionInventory,
  Storage,
  StorageCall,
} from "../storage.ts";
import { NO_SNAPSHOTS, snapshotsNotAvailable } from "./no-snapshots.ts";
import { namesIn, readRecord, replaceRecord, type TreeRecord, writeRecord } from "./record.ts";
import { createTrees } from "./tree.ts";

export interface LocalDiskStorageOptions {
  readonly runner: CommandRunner;
  /** The directory of the storage; made where it is missing. Nothing else may live in it. */
  readonly root: string;
  readonly clock?: Clock;
  /** For copying, measuring or removing one tree. Default 10 minutes. */
  readonly treeDeadlineMs?: number;
}

const UNDO_DEADLINE_MS = 60_000;
/** Each is a child process that reads a whole tree. */
const MEASURES_AT_ONCE = 4;
const DIRECTORIES = ["sessions", "bases", "journals", "staging", "trash"] as const;

/**
 * Sessions as copies in a directory of a plain disk: no snapshots, and quotas are remembered but not enforced.
 *
 * Everything is made in `staging` and comes to its place by one rename, and leaves it by one rename to `trash`, so what is
 * in its place is whole. Both are emptied at `open`.
 */
export function createLocalDiskStorage(options: LocalDiskStorageOptions): Storage {
  const clock = options.clock ?? systemClock;
  const trees = createTrees({ runner: options.runner, deadlineMs: options.treeDeadlineMs ?? 600_000 });
  const turns = new KeyedMutex();
  /** Copies under way: their bases stay. */
  const copies = new Set<{ readonly base: string }>();
  let root: string | undefined;

  const at = (...parts: readonly string[]): string => {
    if (root === undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
    return join(root, ...parts);
  };
  const baseAt = ({ name, digest }: BaseRef): string => at("bases", name, digest);
  const headAt = ({ token, generation }: HeadRef): string => at("sessions", token, "heads", `g${generation}`);
  const inTurn = <T>(key: string, { signal }: StorageCall, work: () => Promise<T>): Promise<T> =>
    turns.run(
      key,
      async () => {
        at();
        if (signal.aborted) throw SandboxError.from(signal.reason);
        return await work();
      },
      signal,
    );

  /** Makes a directory in `staging` and takes it away again unless it has been moved to its place. */
  const staged = async <T>(work: (directory: string) => Promise<T>): Promise<T> => {
    const directory = at("staging", randomToken(16));
    await mkdir(directory);
    try {
      return await work(directory);
    } finally {
      await trees.remove(directory, AbortSignal.timeout(UNDO_DEADLINE_MS)).catch(() => undefined);
    }
  };
  const discard = async (path: string, signal: AbortSignal): Promise<void> => {
    const trash = at("trash", randomToken(16));
    await rename(path, trash);
    await trees.remove(trash, signal);
  };

  const baseRecord = (base: BaseRef): Promise<TreeRecord | undefined> => readRecord(join(baseAt(base), "record.json"));
  const headRecord = (head: HeadRef): Promise<TreeRecord | undefined> => readRecord(join(headAt(head), "record.json"));
  const sessionRecord = (token: string): Promise<TreeRecord | undefined> =>
    readRecord(at("sessions", token, "record.json"));

  const originBase = async (origin: Origin): Promise<{ readonly base: BaseRef; readonly referencedBytes: number }> => {
    if (origin.kind === "snapshot") throw snapshotsNotAvailable();
    checkBase(origin.base);
    const record = await baseRecord(origin.base);
    if (record === undefined) throw baseNotFound(origin.base);
    return { base: origin.base, referencedBytes: record.referencedBytes ?? 0 };
  };
  /** Copies the base into `directory`, which becomes the place of a head. */
  const fillHead = async (directory: string, spec: HeadSpec, signal: AbortSignal): Promise<void> => {
    const { base } = await originBase(spec.origin);
    const { marks, refquotaBytes } = spec;
    await mkdir(join(directory, "root"), { recursive: true });
    const copy = { base: keyOf(base) };
    copies.add(copy);
    try {
      await trees.copy(join(baseAt(base), "root"), join(directory, "root"), signal);
    } finally {
      copies.delete(copy);
    }
    const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
    await writeRecord(join(directory, "record.json"), {
      createdAtMs: clock.nowMs(),
      marks,
      base: keyOf(base),
      ...refquota,
    });
  };
  const findHead = async ({ token, generation }: HeadRef): Promise<Head | undefined> => {
    const record = await headRecord({ token, generation });
    if (record === undefined) return undefined;
    const { refquotaBytes } = record;
    return {
      token,
      generation,
      path: join(headAt({ token, generation }), "root"),
      ...(refquotaBytes === undefined ? {} : { refquotaBytes }),
    };
  };
  const requireHead = async (head: HeadRef): Promise<Head> => {
    checkHead(head);
    const present = await findHead(head);
    if (present === undefined) throw headNotFound(head);
    return present;
  };
  const addHead = async (spec: HeadSpec, signal: AbortSignal): Promise<Head> => {
    const present = await findHead(spec);
    if (present !== undefined) {
      const { base } = await originBase(spec.origin);
      // Nothing tells here whether it is in use, so it stays.
      if ((await headRecord(spec))?.base !== keyOf(base)) throw headDiffers(spec);
      return present;
    }
    await staged(async (directory) => {
      await fillHead(directory, spec, signal);
      await rename(directory, headAt(spec));
    });
    return await requireHead(spec);
  };
  const generationsOf = async (token: string): Promise<readonly number[]> =>
    (await namesIn(at("sessions", token, "heads")))
      .map((name) => Number(name.slice(1)))
      .sort((left, right) => left - right);

  const inventory = async (): Promise<readonly SessionInventory[]> => {
    const sessions: SessionInventory[] = [];
    for (const token of await namesIn(at("sessions"))) {
      const session = await sessionRecord(token);
      if (session === undefined) continue;
      const heads: SessionInventory["heads"][number][] = [];
      for (const generation of await generationsOf(token)) {
        const head = await headRecord({ token, generation });
        if (head !== undefined) heads.push({ token, generation, mounted: "yes", marks: head.marks });
      }
      sessions.push({ token, marks: session.marks, heads, snapshots: [] });
    }
    return sessions;
  };
  const isInUse = async (base: BaseRef): Promise<boolean> => {
    for (const token of await namesIn(at("sessions"))) {
      for (const generation of await generationsOf(token)) {
        if ((await headRecord({ token, generation }))?.base === keyOf(base)) return true;
      }
    }
    return [...copies].some((copy) => copy.base === keyOf(base));
  };

  const destroySession: Storage["destroySession"] = (token, call) =>
    inTurn(`session ${token}`, call, async () => {
      checkToken(token);
      await trees.remove(at("journals", token), call.signal);
      if ((await sessionRecord(token)) !== undefined) await discard(at("sessions", token), call.signal);
    });

  return {
    kind: "local-disk",
    capabilities: { snapshots: "unsupported" },
    open: (call) =>
      turns.run(
        "open",
        async () => {
          await mkdir(options.root, { recursive: true });
          const opened = await realpath(options.root);
          for (const name of DIRECTORIES) await mkdir(join(opened, name), { recursive: true, mode: 0o700 });
          // Passable for the sandbox's users, listable for none of them.
          for (const path of [opened, join(opened, "sessions")]) await chmod(path, 0o711);
          if (root === undefined) await emptyLeftovers(opened, trees.remove, call.signal);
          root = opened;
          return { remounted: [] };
        },
        call.signal,
      ),
    status: async () => {
      const { blocks, bsize, bfree, bavail } = await statfs(at());
      const usedBytes = (blocks - bfree) * bsize;
      const availableBytes = bavail * bsize;
      // Blocks that only root may use are neither used nor to be had.
      return {
        state: "online",
        detail: "local disk",
        sizeBytes: usedBytes + availableBytes,
        usedBytes,
        availableBytes,
      };
    },
    createBase: (base, fill, call) =>
      inTurn(`base ${keyOf(base)}`, call, async () => {
        checkBase(base);
        const present = await baseRecord(base);
        if (present !== undefined) return toBaseInfo(base, present);
        await staged(async (directory) => {
          await mkdir(join(directory, "root"));
          await fill(join(directory, "root"));
          const referencedBytes = await trees.measure(join(directory, "root"), call.signal);
          await writeRecord(join(directory, "record.json"), { createdAtMs: clock.nowMs(), marks: {}, referencedBytes });
          await trees.flush(directory, call.signal);
          await mkdir(at("bases", base.name), { recursive: true, mode: 0o700 });
          await rename(directory, baseAt(base));
        });
        const made = await baseRecord(base);
        if (made === undefined) throw baseNotFound(base);
        return toBaseInfo(base, made);
      }),
    listBases: async () => {
      const bases: BaseInfo[] = [];
      for (const name of await namesIn(at("bases"))) {
        for (const digest of await namesIn(at("bases", name))) {
          const record = await baseRecord({ name, digest });
          if (record !== undefined) bases.push(toBaseInfo({ name, digest }, record));
        }
      }
      return bases.sort((left, right) => left.createdAtMs - right.createdAtMs);
    },
    destroyBase: (base, call) =>
      inTurn(`base ${keyOf(base)}`, call, async () => {
        checkBase(base);
        if ((await baseRecord(base)) === undefined) return;
        if (await isInUse(base)) throw baseInUse(base);
        await discard(baseAt(base), call.signal);
        await rmdir(at("bases", base.name)).catch(() => undefined);
      }),
    createSession: (spec, call) =>
      inTurn(`session ${spec.token}`, call, async () => {
        checkToken(spec.token);
        checkMarks(spec.marks);
        const { token, origin, marks } = spec;
        const refquotaBytes = firstRefquota(spec, (await originBase(origin)).referencedBytes);
        const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
        const first: HeadSpec = { token, generation: 1, origin, marks, ...refquota };
        if ((await sessionRecord(token)) !== undefined) return await addHead(first, call.signal);
        await staged(async (directory) => {
          await fillHead(join(directory, "heads", "g1"), first, call.signal);
          await writeRecord(join(directory, "record.json"), { createdAtMs: clock.nowMs(), marks });
          await rename(directory, at("sessions", token));
        });
        return await requireHead(first);
      }),
    createHead: (spec, call) =>
      inTurn(`session ${spec.token}`, call, async () => {
        checkHead(spec);
        checkMarks(spec.marks);
        if ((await sessionRecord(spec.token)) === undefined) throw sessionNotFound();
        return await addHead(spec, call.signal);
      }),
    boundSession: (bound, call) =>
      inTurn(`session ${bound.token}`, call, async () => {
        checkToken(bound.token);
        const first = { token: bound.token, generation: 1 };
        const record = await headRecord(first);
        if (record === undefined) throw sessionNotFound();
        const { refquotaBytes: _, ...unbounded } = record;
        const refquotaBytes = firstRefquota(bound, (await originBase(bound.origin)).referencedBytes);
        const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
        await replaceRecord(join(headAt(first), "record.json"), { ...unbounded, ...refquota });
        return await requireHead(first);
      }),
    mountHead: (head, call) => inTurn(`session ${head.token}`, call, () => requireHead(head)),
    unmountHead: (head, call) =>
      inTurn(`session ${head.token}`, call, async () => {
        await requireHead(head);
      }),
    destroyHead: (head, call) =>
      inTurn(`session ${head.token}`, call, async () => {
        checkHead(head);
        if ((await findHead(head)) !== undefined) await discard(headAt(head), call.signal);
      }),
    destroySession,
    // Nothing here depends on anything else.
    shrinkSession: destroySession,
    collectHeads: (keep, call) =>
      inTurn(`session ${keep.token}`, call, async () => {
        await requireHead(keep);
        return [];
      }),
    markSession: (token, marks, call) =>
      inTurn(`session ${token}`, call, async () => {
        checkToken(token);
        checkMarks(marks);
        const record = await sessionRecord(token);
        if (record === undefined) throw sessionNotFound();
        await replaceRecord(at("sessions", token, "record.json"), { ...record, marks: { ...record.marks, ...marks } });
      }),
    ...NO_SNAPSHOTS,
    usedBytes: async (token, { signal }) => {
      checkToken(token);
      if ((await sessionRecord(token)) === undefined) throw sessionNotFound();
      return await trees.measure(at("sessions", token), signal);
    },
    headBytes: async (head, { signal }) => await trees.measure((await requireHead(head)).path, signal),
    usedBytesOfAll: async ({ signal }) => {
      const sizes = new Map<string, number>();
      const left = [...(await namesIn(at("sessions")))];
      const measureOn = async (): Promise<void> => {
        for (let token = left.pop(); token !== undefined; token = left.pop()) {
          if ((await sessionRecord(token)) === undefined) continue;
          // One that was destroyed meanwhile has no size.
          const bytes = await trees.measure(at("sessions", token), signal).catch(async (thrown: unknown) => {
            if ((await sessionRecord(token)) !== undefined) throw thrown;
          });
          if (bytes !== undefined) sizes.set(token, bytes);
        }
      };
      await Promise.all(Array.from({ length: MEASURES_AT_ONCE }, measureOn));
      return sizes;
    },
    presence: inventory,
    inventory,
    openJournals: ({ token }, call) =>
      inTurn(`session ${token}`, call, async () => {
        checkToken(token);
        if ((await sessionRecord(token)) === undefined) throw sessionNotFound();
        const path = at("journals", token);
        await mkdir(path, { recursive: true, mode: 0o700 });
        return { path, touch: "directly" };
      }),
    flushHead: async (_head, { signal }) => await trees.flush(at(), signal),
    flush: async ({ signal }) => await trees.flush(at(), signal),
    destroyAll: (call) =>
      turns.run(
        "open",
        async () => {
          root = undefined;
          for (const name of DIRECTORIES) await trees.remove(join(options.root, name), call.signal);
          await rmdir(options.root).catch(() => undefined);
        },
        call.signal,
      ),
  };
}

async function emptyLeftovers(
  root: string,
  remove: (path: string, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (const place of ["staging", "trash"]) {
    for (const name of await namesIn(join(root, place))) await remove(join(root, place, name), signal);
  }
}

function keyOf({ name, digest }: BaseRef): string {
  return `${name}@${digest}`;
}

function toBaseInfo({ name, digest }: BaseRef, { createdAtMs, referencedBytes }: TreeRecord): BaseInfo {
  return { name, digest, createdAtMs, referencedBytes: referencedBytes ?? 0 };
}
