import { hasReason, type SandboxError } from "@turnbox/core";
import { type Session, shareKeyOf } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { OperationName, OutputOf } from "./file-operations.ts";
import type { JobRun } from "./job-run.ts";
import type { FileJob, FileWorkers } from "./workers.ts";

type Call = { readonly signal: AbortSignal };
type Job<Name extends OperationName> = Omit<FileJob<Name>, "root" | "shareKey" | "device">;

/**
 * Operations on the files of a session: finds where its head is mounted, mounts it where it is not. Callers that change
 * files hold a place in the session's gate.
 *
 *     const result = await files.run(session, "read_file", { input }, { signal });
 */
export interface SessionFiles {
  run<Name extends OperationName>(session: Session, name: Name, job: Job<Name>, call: Call): Promise<OutputOf<Name>>;
  /** The caller disposes what it gets. */
  stream<Name extends OperationName>(
    session: Session,
    name: Name,
    job: Job<Name>,
    call: Call,
  ): Promise<JobRun<OutputOf<Name>>>;
}

/** Where a head is mounted, and the filesystem that is there while it is. */
interface Root {
  readonly generation: number;
  readonly path: string;
  readonly device: number;
}

export function createSessionFiles(deps: { readonly storage: Storage; readonly workers: FileWorkers }): SessionFiles {
  const { storage, workers } = deps;
  const roots = new WeakMap<Session, Root>();

  const mount = async (session: Session, call: Call): Promise<Root> => {
    const { head } = session;
    const { path } = await storage.mountHead(head, call);
    const device = await workers.run("device", { root: path, shareKey: shareKeyOf(session), input: null }, call);
    const root = { generation: head.generation, path, device };
    roots.set(session, root);
    return root;
  };

  /** What was found once holds until a worker says that it does not, so that most calls need no word with the storage. */
  const rootOf = async (session: Session, call: Call): Promise<Root> => {
    const known = roots.get(session);
    return known?.generation === session.head.generation ? known : await mount(session, call);
  };

  const verified = async (session: Session, call: Call): Promise<Root> => {
    const root = await rootOf(session, call);
    const { path, device } = root;
    await workers.run("nothing", { root: path, shareKey: shareKeyOf(session), device, input: null }, call);
    return root;
  };

  /** A root that is lost is so before anything was done: the second attempt is the first that does something. */
  const mounted = async <Result>(session: Session, call: Call, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (thrown) {
      if (!isRootLost(thrown)) throw thrown;
      await mount(session, call);
      return await work();
    }
  };

  return {
    run: (session, name, job, call) =>
      mounted(session, call, () =>
        rootOf(session, call).then(({ path: root, device }) =>
          workers.run(name, { ...job, root, shareKey: shareKeyOf(session), device }, call),
        ),
      ),
    stream: async (session, name, job, call) => {
      // A body can be sent once only, so the root is looked at first.
      const { path: root, device } = await mounted(session, call, () => verified(session, call));
      return await workers.stream(name, { ...job, root, shareKey: shareKeyOf(session), device }, call);
    },
  };
}

function isRootLost(thrown: unknown): thrown is SandboxError {
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && thrown.metadata["root"] === "lost";
}
