import { type Call, hasReason, type SandboxError } from "@turnbox/core";
import { type Session, shareKeyOf } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { OperationName, OutputOf } from "./file-operations.ts";
import type { JobRun } from "./job-run.ts";
import type { FileJob, FileWorkers } from "./workers.ts";

type Job<Name extends OperationName> = Omit<FileJob<Name>, "root" | "shareKey" | "device">;

/**
 * Operations on the files of a session: finds the mount of its head, and mounts it if there is none. A caller that changes
 * files has entered the session's gate.
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

/** The directory that a head is mounted at, and the filesystem that is there while it is mounted. */
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

  /** A root is used until a worker reports that it is lost, so most calls do not involve the storage. */
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

  /** A worker finds a lost root before it does anything, so the work is done once even if it is tried twice. */
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
      // A body can be sent once only, so the root is verified first.
      const { path: root, device } = await mounted(session, call, () => verified(session, call));
      return await workers.stream(name, { ...job, root, shareKey: shareKeyOf(session), device }, call);
    },
  };
}

function isRootLost(thrown: unknown): thrown is SandboxError {
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && thrown.metadata["root"] === "lost";
}
