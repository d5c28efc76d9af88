import { join } from "node:path";
import { hasReason, SandboxError } from "@turnbox/core";
import { createSerial } from "../async/serial.ts";
import { operationName } from "../file/operation.ts";
import type { FileWorkers } from "../file/workers.ts";
import type { JournalDirectory, Journals } from "../storage/journals.ts";
import { type journalOperation, type JournalResult, type JournalWork, workOnJournal } from "./journal-operation.ts";
import type { Journal } from "./journal.ts";

/** A journal that lies in the storage, where its session's bound holds. */
export interface StoredJournal extends Journal {
  /** Makes its directory, empty. */
  make(): Promise<void>;
  remove(): Promise<void>;
}

/**
 * The journals of processes that write to them by themselves. They lie in the storage; where its daemon may hang with
 * whoever touches them, that is a file worker and never this process.
 */
export interface StoredJournals {
  of(process: { readonly token: string; readonly processId: string }): StoredJournal;
  /** Forgets where the journals of a session are that is gone. */
  forget(token: string): void;
}

interface Root extends JournalDirectory {
  /** The filesystem that is there while it is mounted; null where nothing is. */
  readonly device: number | null;
}

const JOURNAL = operationName<typeof journalOperation>("journal");
/** One that does not answer by then hangs. Copying the part that a rotation keeps takes longer than the rest. */
const DEADLINE_MS = 5_000;
const LONG_DEADLINE_MS = 30_000;

export function createStoredJournals(deps: {
  readonly storage: Journals;
  readonly workers: Pick<FileWorkers, "run">;
  /** What the journals of one session may take together. */
  readonly quotaBytes: number;
}): StoredJournals {
  const { storage, workers, quotaBytes } = deps;
  const roots = new Map<string, Promise<Root>>();

  const open = async (token: string): Promise<Root> => {
    const call = { signal: AbortSignal.timeout(LONG_DEADLINE_MS) };
    const journals = await storage.openJournals({ token, quotaBytes }, call);
    if (journals.touch === "directly") return { ...journals, device: null };
    const device = await workers.run(
      "device",
      { root: journals.path, shareKey: token, input: null, lane: "journal" },
      call,
    );
    return { ...journals, device };
  };
  const rootOf = (token: string): Promise<Root> => {
    const known = roots.get(token);
    if (known !== undefined) return known;
    const opening = open(token);
    roots.set(token, opening);
    opening.catch(() => {
      if (roots.get(token) === opening) roots.delete(token);
    });
    return opening;
  };

  const attempt = async (token: string, name: string, work: JournalWork): Promise<JournalResult> => {
    const { path: root, device } = await rootOf(token);
    if (device === null) return await workOnJournal(join(root, name), work);
    const deadlineMs = work.kind === "rotate" ? LONG_DEADLINE_MS : DEADLINE_MS;
    let piece: JournalResult["piece"] = { data: Buffer.alloc(0), offset: 0 };
    const job = { root, shareKey: token, device, input: { name, work }, deadlineMs, lane: "journal" } as const;
    const onPiece = ({ bytes, about }: { readonly bytes: Buffer; readonly about: unknown }): void => {
      piece = { data: bytes, offset: Number(about) };
    };
    const state = await workers.run(JOURNAL, { ...job, onPiece }, { signal: AbortSignal.timeout(deadlineMs) });
    return { state, piece };
  };
  /** A directory that was mounted anew is found once more; nothing was done by then. */
  const run: typeof attempt = async (token, name, work) => {
    try {
      return await attempt(token, name, work);
    } catch (thrown) {
      if (!isRootLost(thrown)) throw thrown;
      roots.delete(token);
      return await attempt(token, name, work);
    }
  };

  return {
    forget: (token) => void roots.delete(token),
    of: ({ token, processId: name }) => {
      const serial = createSerial();
      let keptBytes = 0;
      const perform = (work: JournalWork): Promise<JournalResult> =>
        serial.run(async () => {
          const done = await run(token, name, work);
          keptBytes = done.state.keptBytes;
          return done;
        });
      return {
        get keptBytes() {
          return keptBytes;
        },
        outputPath: async () => join((await rootOf(token)).path, name, "output"),
        extent: async () => {
          const { start, end } = (await perform({ kind: "look" })).state;
          return { start, end };
        },
        read: async (offset, maxBytes) => (await perform({ kind: "read", offset, maxBytes })).piece,
        append: () => Promise.reject(new SandboxError("INTERNAL", "the process writes this journal by itself")),
        liveBytes: async () => (await perform({ kind: "look" })).state.liveBytes,
        rotate: async (keepBytes) => {
          await perform({ kind: "rotate", keepBytes });
        },
        // Every piece of work ends what an earlier one has left.
        recover: () => Promise.resolve(),
        make: async () => {
          await perform({ kind: "make" });
        },
        remove: async () => {
          await perform({ kind: "remove" });
        },
      };
    },
  };
}

function isRootLost(thrown: unknown): boolean {
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && thrown.metadata["root"] === "lost";
}
