import { join } from "node:path";
import { hasReason, Mutex, SandboxError } from "@turnbox/core";
import { operationName } from "../file/operation.ts";
import type { FileWorkers } from "../file/workers.ts";
import type { JournalDirectory, Journals } from "../storage/journals.ts";
import { type journalOperation, type JournalResult, type JournalWork, workOnJournal } from "./journal-operation.ts";
import type { Journal, JournalPiece } from "./journal.ts";

interface Root extends JournalDirectory {
  /** The filesystem of the directory while it is mounted, which a worker checks; null if it is touched directly. */
  readonly device: number | null;
}

const JOURNAL = operationName<typeof journalOperation>("journal");
/** Work that takes longer is taken for hanging. Copying the part that a rotation keeps takes longer than the rest. */
const DEADLINE_MS = 5_000;
const LONG_DEADLINE_MS = 30_000;

/**
 * The journals of processes that write to them by themselves. They are in the storage. If its daemon can hang a process that
 * touches them, a file worker does so and never this process.
 */
export class StoredJournals {
  readonly #storage: Journals;
  readonly #workers: Pick<FileWorkers, "run">;
  readonly #quotaBytes: number;
  /** By token. */
  readonly #roots = new Map<string, Promise<Root>>();

  constructor(deps: {
    readonly storage: Journals;
    readonly workers: Pick<FileWorkers, "run">;
    /** What the journals of one session may take together. */
    readonly quotaBytes: number;
  }) {
    this.#storage = deps.storage;
    this.#workers = deps.workers;
    this.#quotaBytes = deps.quotaBytes;
  }

  of({ token, processId: name }: { readonly token: string; readonly processId: string }): StoredJournal {
    return new StoredJournal({
      outputPath: async () => join((await this.#rootOf(token)).path, name, "output"),
      work: (work) => this.#run(token, name, work),
    });
  }

  /** Forgets the directory of a session that is destroyed. */
  forget(token: string): void {
    this.#roots.delete(token);
  }

  /** If the directory was mounted again meanwhile, it is opened once more; nothing was done by then. */
  async #run(token: string, name: string, work: JournalWork): Promise<JournalResult> {
    try {
      return await this.#attempt(token, name, work);
    } catch (thrown) {
      if (!isRootLost(thrown)) throw thrown;
      this.#roots.delete(token);
      return await this.#attempt(token, name, work);
    }
  }

  async #attempt(token: string, name: string, work: JournalWork): Promise<JournalResult> {
    const { path: root, device } = await this.#rootOf(token);
    if (device === null) return await workOnJournal(join(root, name), work);
    const deadlineMs = work.kind === "rotate" ? LONG_DEADLINE_MS : DEADLINE_MS;
    let piece: JournalPiece = { data: Buffer.alloc(0), offset: 0 };
    const job = { root, shareKey: token, device, input: { name, work }, deadlineMs, lane: "journal" } as const;
    const onPiece = ({ bytes, about }: { readonly bytes: Buffer; readonly about: unknown }): void => {
      piece = { data: bytes, offset: Number(about) };
    };
    const state = await this.#workers.run(JOURNAL, { ...job, onPiece }, { signal: AbortSignal.timeout(deadlineMs) });
    return { state, piece };
  }

  async #rootOf(token: string): Promise<Root> {
    const known = this.#roots.get(token);
    if (known !== undefined) return await known;
    const opening = this.#open(token);
    this.#roots.set(token, opening);
    opening.catch(() => {
      if (this.#roots.get(token) === opening) this.#roots.delete(token);
    });
    return await opening;
  }

  async #open(token: string): Promise<Root> {
    const call = { signal: AbortSignal.timeout(LONG_DEADLINE_MS) };
    const journals = await this.#storage.openJournals({ token, quotaBytes: this.#quotaBytes }, call);
    if (journals.touch === "directly") return { ...journals, device: null };
    const job = { root: journals.path, shareKey: token, input: null, lane: "journal" } as const;
    return { ...journals, device: await this.#workers.run("device", job, call) };
  }
}

/** How the journal of one process is worked on. */
interface JournalAccess {
  readonly outputPath: () => Promise<string>;
  readonly work: (work: JournalWork) => Promise<JournalResult>;
}

/** A journal in the storage, within the bound of its session. */
export class StoredJournal implements Journal {
  readonly #access: JournalAccess;
  readonly #mutex = new Mutex();
  #keptBytes = 0;

  constructor(access: JournalAccess) {
    this.#access = access;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  async outputPath(): Promise<string> {
    return await this.#access.outputPath();
  }

  async extent(): Promise<{ readonly start: number; readonly end: number }> {
    const { start, end } = (await this.#perform({ kind: "look" })).state;
    return { start, end };
  }

  async read(offset: number, maxBytes: number): Promise<JournalPiece> {
    return (await this.#perform({ kind: "read", offset, maxBytes })).piece;
  }

  async append(): Promise<void> {
    await Promise.reject(new SandboxError("INTERNAL", "the process writes this journal by itself"));
  }

  async liveBytes(): Promise<number> {
    return (await this.#perform({ kind: "look" })).state.liveBytes;
  }

  async rotate(keepBytes: number): Promise<void> {
    await this.#perform({ kind: "rotate", keepBytes });
  }

  /** Does nothing: every piece of work ends what an earlier one has left. */
  async recover(): Promise<void> {
    await Promise.resolve();
  }

  /** Makes its directory, empty. */
  async make(): Promise<void> {
    await this.#perform({ kind: "make" });
  }

  async remove(): Promise<void> {
    await this.#perform({ kind: "remove" });
  }

  async #perform(work: JournalWork): Promise<JournalResult> {
    return await this.#mutex.run(async () => {
      const done = await this.#access.work(work);
      this.#keptBytes = done.state.keptBytes;
      return done;
    });
  }
}

function isRootLost(thrown: unknown): boolean {
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && thrown.metadata["root"] === "lost";
}
