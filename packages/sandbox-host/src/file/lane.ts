import { SandboxError } from "@turnbox/core";
import type { WorkerProcess } from "./worker-process.ts";

/** How many workers there are for one kind of work. */
export interface LaneLimits {
  /** Idle workers that are kept for the next job. */
  readonly warm: number;
  readonly max: number;
  /** Jobs that wait for a worker; more are refused. */
  readonly maxWaiting: number;
}

/** A worker for one job. Exactly one of the two ends it; a second call does nothing. */
export interface Lease {
  readonly worker: WorkerProcess;
  /** The worker is free for the next job. */
  release(): void;
  /** The worker is killed, and not waited for. */
  discard(): void;
}

export interface LaneStats {
  readonly idle: number;
  readonly busy: number;
  readonly waiting: number;
  /** Workers that were killed and are not gone yet. */
  readonly left: number;
}

/**
 * The workers of one kind of work. Jobs on one root never take all of them, so a session whose files hang or that asks
 * for too much leaves one to the others. A killed worker that does not die is left behind and counted; its place is free.
 */
export interface Lane extends AsyncDisposable {
  /** A worker that is free now. None where `take` would refuse. */
  free(root: string): Lease | undefined;
  /** Waits for a worker. `OVERLOADED` where too many wait, `STORAGE_UNAVAILABLE` where too many were left behind. */
  take(root: string, call: { readonly signal: AbortSignal }): Promise<Lease>;
  stats(): LaneStats;
}

interface Waiter {
  readonly root: string;
  readonly resolve: (lease: Lease) => void;
  readonly reject: (thrown: unknown) => void;
}

const MAX_LEFT = 64;
/** Starting one takes the machine more than most jobs: a worker that becomes free meanwhile serves the next as well. */
const MAX_STARTING = 2;
/** A worker is replaced after so many jobs, whatever it may have piled up. */
const MAX_JOBS = 10_000;

export function createLane(start: () => Promise<WorkerProcess>, limits: LaneLimits): Lane {
  const idle: WorkerProcess[] = [];
  const waiting: Waiter[] = [];
  const busyOf = new Map<string, number>();
  const jobsOf = new WeakMap<WorkerProcess, number>();
  const left = new Set<WorkerProcess>();
  const busy = new Set<WorkerProcess>();
  let starting = 0;
  let isClosed = false;
  const maxPerRoot = Math.max(1, limits.max - 1);
  const hasRoom = (root: string): boolean => (busyOf.get(root) ?? 0) < maxPerRoot;

  const discard = (worker: WorkerProcess): void => {
    left.add(worker);
    worker.gone.finally(() => left.delete(worker)).catch(() => undefined);
    worker.kill();
  };

  const startOne = (): void => {
    starting += 1;
    start().then(
      (worker) => {
        starting -= 1;
        if (isClosed) discard(worker);
        else idle.push(worker);
        const forget = (): void => {
          const at = idle.indexOf(worker);
          if (at >= 0) idle.splice(at, 1);
        };
        worker.gone.then(forget, forget);
        dispatch();
      },
      (thrown: unknown) => {
        starting -= 1;
        waiting.shift()?.reject(thrown);
      },
    );
  };

  const leaseOf = (worker: WorkerProcess, root: string): Lease => {
    let isOver = false;
    const end = (keep: boolean): void => {
      if (isOver) return;
      isOver = true;
      busy.delete(worker);
      const others = (busyOf.get(root) ?? 1) - 1;
      if (others === 0) busyOf.delete(root);
      else busyOf.set(root, others);
      const jobs = (jobsOf.get(worker) ?? 0) + 1;
      jobsOf.set(worker, jobs);
      const isWanted = waiting.length > 0 || idle.length < limits.warm;
      if (keep && isWanted && jobs < MAX_JOBS && !isClosed) idle.push(worker);
      else discard(worker);
      dispatch();
    };
    busy.add(worker);
    busyOf.set(root, (busyOf.get(root) ?? 0) + 1);
    return {
      worker,
      release: () => {
        end(true);
      },
      discard: () => {
        end(false);
      },
    };
  };

  const dispatch = (): void => {
    while (!isClosed) {
      const at = waiting.findIndex(({ root }) => hasRoom(root));
      const waiter = waiting[at];
      if (waiter === undefined) return;
      const worker = idle.pop();
      if (worker === undefined) {
        const wanted = Math.min(waiting.length, limits.max - busy.size, MAX_STARTING);
        while (starting < wanted) startOne();
        return;
      }
      waiting.splice(at, 1);
      waiter.resolve(leaseOf(worker, waiter.root));
    }
  };

  const free = (root: string): Lease | undefined => {
    const isOpen = !isClosed && left.size < MAX_LEFT && waiting.length === 0;
    const worker = isOpen && hasRoom(root) ? idle.pop() : undefined;
    return worker === undefined ? undefined : leaseOf(worker, root);
  };

  return {
    free,
    take: async (root, { signal }) => {
      signal.throwIfAborted();
      if (isClosed) throw new SandboxError("SHUTTING_DOWN", "the host is stopping");
      if (waiting.length >= limits.maxWaiting + limits.max - busy.size)
        throw new SandboxError("OVERLOADED", "too many file operations wait");
      if (left.size >= MAX_LEFT) {
        throw new SandboxError("STORAGE_UNAVAILABLE", "too many file operations hang", { admitted: "no" });
      }
      const found = free(root);
      if (found !== undefined) return found;
      return await new Promise<Lease>((resolve, reject) => {
        const onAbort = (): void => {
          const at = waiting.indexOf(waiter);
          if (at >= 0) waiting.splice(at, 1);
          reject(SandboxError.from(signal.reason));
        };
        const waiter: Waiter = {
          root,
          resolve: (lease) => {
            signal.removeEventListener("abort", onAbort);
            resolve(lease);
          },
          reject: (thrown) => {
            signal.removeEventListener("abort", onAbort);
            reject(SandboxError.from(thrown));
          },
        };
        waiting.push(waiter);
        signal.addEventListener("abort", onAbort, { once: true });
        dispatch();
      });
    },
    stats: () => ({ idle: idle.length, busy: busy.size, waiting: waiting.length, left: left.size }),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      const stopped = new SandboxError("SHUTTING_DOWN", "the host is stopping");
      for (const waiter of waiting.splice(0)) waiter.reject(stopped);
      const all = [...idle.splice(0), ...busy];
      for (const worker of all) worker.kill();
      await Promise.all([...all, ...left].map((worker) => atMostASecond(worker.gone)));
    },
  };
}

/** One that hangs in the storage is not waited for. */
async function atMostASecond(gone: Promise<unknown>): Promise<void> {
  const limit = AbortSignal.timeout(1000);
  await Promise.race([
    gone,
    new Promise<void>((resolve) => {
      limit.addEventListener(
        "abort",
        () => {
          resolve();
        },
        { once: true },
      );
    }),
  ]);
}
