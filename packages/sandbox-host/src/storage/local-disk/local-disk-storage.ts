import { mkdir, rename, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type CommandRunner, KeyedMutex, namingAborts, SandboxError, systemClock } from "@turnbox/core";
import type { JournalDirectory, JournalsSpec } from "../journals.ts";
import {
  baseInUse,
  baseNotFound,
  checkBase,
  checkHead,
  checkMarks,
  checkToken,
  firstRefquota,
  headDiffers,
  sessionNotFound,
} from "../names.ts";
import type {
  BaseInfo,
  BaseRef,
  Head,
  HeadRef,
  HeadSpec,
  Marks,
  SessionBound,
  SessionInventory,
  SessionSpec,
  Storage,
  StorageCall,
  StorageStatus,
} from "../storage.ts";
import { DiskFiles, emptyLeftovers, keyOf, prepareRoot, removeRoot, snapshotsNotAvailable } from "./disk-files.ts";
import { namesIn, replaceRecord, type TreeRecord, writeRecord } from "./record.ts";
import { createTrees, type Trees } from "./tree.ts";

export interface LocalDiskStorageOptions {
  readonly runner: CommandRunner;
  /** The directory of the storage; made if it is missing. Nothing else may live in it. */
  readonly root: string;
  readonly clock?: Clock;
  /** For copying, measuring or removing one tree. Default 10 minutes. */
  readonly treeDeadlineMs?: number;
}

/** Each is a child process that reads a whole tree. */
const MEASURES_AT_ONCE = 4;

/**
 * Sessions as copies in a directory of a plain disk: no snapshots, and quotas are remembered but not enforced.
 *
 * Everything is made in `staging` and comes to its final path by one rename, and leaves it by one rename to `trash`, so
 * what is there is whole. Both are emptied at `open`.
 */
export class LocalDiskStorage implements Storage {
  readonly kind = "local-disk";
  readonly capabilities = { snapshots: "unsupported" } as const;

  readonly #options: LocalDiskStorageOptions;
  readonly #clock: Clock;
  readonly #trees: Trees;
  readonly #mutex = new KeyedMutex();
  /** Copies under way: their bases stay. */
  readonly #copies = new Set<{ readonly base: string }>();
  #files: DiskFiles | undefined;

  constructor(options: LocalDiskStorageOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#trees = createTrees({ runner: options.runner, deadlineMs: options.treeDeadlineMs ?? 600_000 });
  }

  open({ signal }: StorageCall): ReturnType<Storage["open"]> {
    return namingAborts(
      this.#mutex.run(
        "open",
        async () => {
          const root = await prepareRoot(this.#options.root);
          if (this.#files === undefined) await emptyLeftovers(root, this.#trees, signal);
          this.#files = new DiskFiles(root, this.#trees);
          return { remounted: [] };
        },
        signal,
      ),
    );
  }

  async status(): Promise<StorageStatus> {
    const { blocks, bsize, bfree, bavail } = await statfs(this.#opened().root);
    const usedBytes = (blocks - bfree) * bsize;
    const availableBytes = bavail * bsize;
    // Blocks that only root may use are neither used nor to be had.
    const sizeBytes = usedBytes + availableBytes;
    return { state: "online", detail: "local disk", sizeBytes, usedBytes, availableBytes };
  }

  createBase(base: BaseRef, fill: (directory: string) => Promise<void>, call: StorageCall): Promise<BaseInfo> {
    return this.#runForBase(base, call, async (files) => {
      checkBase(base);
      const present = await files.readBase(base);
      if (present !== undefined) return toBaseInfo(base, present);
      await files.stage(async (directory) => {
        const tree = join(directory, "root");
        await mkdir(tree);
        await fill(tree);
        const referencedBytes = await this.#trees.measure(tree, call.signal);
        await writeRecord(join(directory, "record.json"), {
          createdAtMs: this.#clock.nowMs(),
          marks: {},
          referencedBytes,
        });
        await this.#trees.flush(directory, call.signal);
        await mkdir(files.at("bases", base.name), { recursive: true, mode: 0o700 });
        await rename(directory, files.base(base));
      });
      const made = await files.readBase(base);
      if (made === undefined) throw baseNotFound(base);
      return toBaseInfo(base, made);
    });
  }

  async listBases(): Promise<readonly BaseInfo[]> {
    const files = this.#opened();
    const bases: BaseInfo[] = [];
    for (const name of await namesIn(files.at("bases"))) {
      for (const digest of await namesIn(files.at("bases", name))) {
        const record = await files.readBase({ name, digest });
        if (record !== undefined) bases.push(toBaseInfo({ name, digest }, record));
      }
    }
    return bases.sort((left, right) => left.createdAtMs - right.createdAtMs);
  }

  destroyBase(base: BaseRef, call: StorageCall): Promise<void> {
    return this.#runForBase(base, call, async (files) => {
      checkBase(base);
      if ((await files.readBase(base)) === undefined) return;
      const isInUse = (await files.hasHeadOf(base)) || [...this.#copies].some((copy) => copy.base === keyOf(base));
      if (isInUse) throw baseInUse(base);
      await files.discard(files.base(base), call.signal);
      await rmdir(files.at("bases", base.name)).catch(() => undefined);
    });
  }

  createSession(spec: SessionSpec, call: StorageCall): Promise<Head> {
    return this.#runForSession(spec.token, call, async (files) => {
      checkToken(spec.token);
      checkMarks(spec.marks);
      const { token, origin, marks } = spec;
      const refquotaBytes = firstRefquota(spec, (await files.requireOrigin(origin)).referencedBytes);
      const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
      const first: HeadSpec = { token, generation: 1, origin, marks, ...refquota };
      if ((await files.readSession(token)) !== undefined) return await this.#addHead(files, first, call.signal);
      await files.stage(async (directory) => {
        await this.#fillHead(files, first, { directory: join(directory, "heads", "g1"), signal: call.signal });
        await writeRecord(join(directory, "record.json"), { createdAtMs: this.#clock.nowMs(), marks });
        await rename(directory, files.session(token));
      });
      return await files.requireHead(first);
    });
  }

  createHead(spec: HeadSpec, call: StorageCall): Promise<Head> {
    return this.#runForSession(spec.token, call, async (files) => {
      checkHead(spec);
      checkMarks(spec.marks);
      if ((await files.readSession(spec.token)) === undefined) throw sessionNotFound();
      return await this.#addHead(files, spec, call.signal);
    });
  }

  boundSession(bound: SessionBound, call: StorageCall): Promise<Head> {
    return this.#runForSession(bound.token, call, async (files) => {
      checkToken(bound.token);
      const first = { token: bound.token, generation: 1 };
      const record = await files.readHead(first);
      if (record === undefined) throw sessionNotFound();
      const { refquotaBytes: _, ...unbounded } = record;
      const refquotaBytes = firstRefquota(bound, (await files.requireOrigin(bound.origin)).referencedBytes);
      const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
      await replaceRecord(join(files.head(first), "record.json"), { ...unbounded, ...refquota });
      return await files.requireHead(first);
    });
  }

  mountHead(head: HeadRef, call: StorageCall): Promise<Head> {
    return this.#runForSession(head.token, call, (files) => files.requireHead(head));
  }

  unmountHead(head: HeadRef, call: StorageCall): Promise<void> {
    return this.#runForSession(head.token, call, async (files) => {
      await files.requireHead(head);
    });
  }

  destroyHead(head: HeadRef, call: StorageCall): Promise<void> {
    return this.#runForSession(head.token, call, async (files) => {
      checkHead(head);
      if ((await files.findHead(head)) !== undefined) await files.discard(files.head(head), call.signal);
    });
  }

  destroySession(token: string, call: StorageCall): Promise<void> {
    return this.#runForSession(token, call, async (files) => {
      checkToken(token);
      await this.#trees.remove(files.at("journals", token), call.signal);
      if ((await files.readSession(token)) !== undefined) await files.discard(files.session(token), call.signal);
    });
  }

  /** Nothing here depends on anything else. */
  shrinkSession(token: string, call: StorageCall): Promise<void> {
    return this.destroySession(token, call);
  }

  collectHeads(keep: HeadRef, call: StorageCall): Promise<readonly HeadRef[]> {
    return this.#runForSession(keep.token, call, async (files) => {
      await files.requireHead(keep);
      return [];
    });
  }

  markSession(token: string, marks: Marks, call: StorageCall): Promise<void> {
    return this.#runForSession(token, call, async (files) => {
      checkToken(token);
      checkMarks(marks);
      const record = await files.readSession(token);
      if (record === undefined) throw sessionNotFound();
      const path = join(files.session(token), "record.json");
      await replaceRecord(path, { ...record, marks: { ...record.marks, ...marks } });
    });
  }

  async seal(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async listSnapshots(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async destroySnapshot(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async isUnchanged(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async openView(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async changedPaths(): Promise<never> {
    throw snapshotsNotAvailable();
  }

  async usedBytes(token: string, { signal }: StorageCall): Promise<number> {
    checkToken(token);
    const files = this.#opened();
    if ((await files.readSession(token)) === undefined) throw sessionNotFound();
    return await this.#trees.measure(files.session(token), signal);
  }

  async headBytes(head: HeadRef, { signal }: StorageCall): Promise<number> {
    return await this.#trees.measure((await this.#opened().requireHead(head)).path, signal);
  }

  async usedBytesOfAll({ signal }: StorageCall): Promise<ReadonlyMap<string, number>> {
    const files = this.#opened();
    const sizes = new Map<string, number>();
    const left = [...(await namesIn(files.at("sessions")))];
    const measureOn = async (): Promise<void> => {
      for (let token = left.pop(); token !== undefined; token = left.pop()) {
        if ((await files.readSession(token)) === undefined) continue;
        // One that was destroyed meanwhile has no size.
        const bytes = await this.#trees.measure(files.session(token), signal).catch(async (thrown: unknown) => {
          if ((await files.readSession(token)) !== undefined) throw thrown;
        });
        if (bytes !== undefined) sizes.set(token, bytes);
      }
    };
    await Promise.all(Array.from({ length: MEASURES_AT_ONCE }, measureOn));
    return sizes;
  }

  async presence(): Promise<readonly SessionInventory[]> {
    return await this.#opened().listSessions();
  }

  async inventory(): Promise<readonly SessionInventory[]> {
    return await this.#opened().listSessions();
  }

  openJournals({ token }: JournalsSpec, call: StorageCall): Promise<JournalDirectory> {
    return this.#runForSession(token, call, async (files) => {
      checkToken(token);
      if ((await files.readSession(token)) === undefined) throw sessionNotFound();
      const path = files.at("journals", token);
      await mkdir(path, { recursive: true, mode: 0o700 });
      return { path, touch: "directly" };
    });
  }

  async flush({ signal }: StorageCall): Promise<void> {
    await this.#trees.flush(this.#opened().root, signal);
  }

  destroyAll({ signal }: StorageCall): Promise<void> {
    return namingAborts(
      this.#mutex.run(
        "open",
        async () => {
          this.#files = undefined;
          await removeRoot(this.#options.root, this.#trees, signal);
        },
        signal,
      ),
    );
  }

  #opened(): DiskFiles {
    if (this.#files === undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open");
    return this.#files;
  }

  #runForSession<T>(token: string, call: StorageCall, work: (files: DiskFiles) => Promise<T>): Promise<T> {
    return this.#runKeyed(`session ${token}`, call, work);
  }

  #runForBase<T>(base: BaseRef, call: StorageCall, work: (files: DiskFiles) => Promise<T>): Promise<T> {
    return this.#runKeyed(`base ${keyOf(base)}`, call, work);
  }

  #runKeyed<T>(key: string, { signal }: StorageCall, work: (files: DiskFiles) => Promise<T>): Promise<T> {
    return namingAborts(
      this.#mutex.run(
        key,
        async () => {
          const files = this.#opened();
          if (signal.aborted) throw SandboxError.from(signal.reason);
          return await work(files);
        },
        signal,
      ),
    );
  }

  async #addHead(files: DiskFiles, spec: HeadSpec, signal: AbortSignal): Promise<Head> {
    const present = await files.findHead(spec);
    if (present !== undefined) {
      const { base } = await files.requireOrigin(spec.origin);
      // Whether it is in use is not known here, so it stays.
      if ((await files.readHead(spec))?.base !== keyOf(base)) throw headDiffers(spec);
      return present;
    }
    await files.stage(async (directory) => {
      await this.#fillHead(files, spec, { directory, signal });
      await rename(directory, files.head(spec));
    });
    return await files.requireHead(spec);
  }

  /** Copies the base into `directory`, which becomes the directory of a head. */
  async #fillHead(
    files: DiskFiles,
    { origin, marks, refquotaBytes }: HeadSpec,
    { directory, signal }: StorageCall & { readonly directory: string },
  ): Promise<void> {
    const { base } = await files.requireOrigin(origin);
    await mkdir(join(directory, "root"), { recursive: true });
    const copy = { base: keyOf(base) };
    this.#copies.add(copy);
    try {
      await this.#trees.copy(join(files.base(base), "root"), join(directory, "root"), signal);
    } finally {
      this.#copies.delete(copy);
    }
    await writeRecord(join(directory, "record.json"), {
      createdAtMs: this.#clock.nowMs(),
      marks,
      base: keyOf(base),
      ...(refquotaBytes === undefined ? {} : { refquotaBytes }),
    });
  }
}

function toBaseInfo({ name, digest }: BaseRef, { createdAtMs, referencedBytes }: TreeRecord): BaseInfo {
  return { name, digest, createdAtMs, referencedBytes: referencedBytes ?? 0 };
}
