import { type Clock, SandboxError, setAlarm, systemClock } from "@turnbox/core";
import { FairQueue } from "../share/fair-queue.ts";
import { Shares } from "../share/shares.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** How many workers there are for one kind of work. */
export interface LaneLimits {
  /** Idle workers that are kept for the next job. */
  readonly warm: number;
  /** As many are started as soon as they are wanted; a job has to wait a moment before there are more. */
  readonly usual: number;
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
 * The workers of one kind of work. `shareKey` says for whom a job is: the keys share workers and places to wait by the rule
 * of `Shares`, and the key that holds least goes first, so one whose files hang or that asks for too much leaves enough to
 * the others. A killed worker that does not die is left behind and counted; its place is free.
 */
export interface Lane extends AsyncDisposable {
  /** A worker that is free now. None where `take` would refuse. */
  free(shareKey: string): Lease | undefined;
  /** Waits for a worker. `OVERLOADED` where too many wait, `STORAGE_UNAVAILABLE` where too many were left behind. */
  take(shareKey: string, call: { readonly signal: AbortSignal }): Promise<Lease>;
  stats(): LaneStats;
}

interface Waiter {
  readonly resolve: (lease: Lease) => void;
  readonly reject: (thrown: unknown) => void;
}

const MAX_LEFT = 64;
/** Starting one takes the machine more than most jobs: a worker that becomes free meanwhile serves the next as well. */
const MAX_STARTING = 2;
/** How long a job waits before the usual workers are taken to be held up by others. */
const PATIENCE_MS = 100;
/** A worker is replaced after so many jobs, whatever it may have piled up. */
const MAX_JOBS = 10_000;

export function createLane(start: () => Promise<WorkerProcess>, limits: LaneLimits, clock: Clock = systemClock): Lane {
  const idle: WorkerProcess[] = [];
  const waiting = new FairQueue<Waiter>();
  const shares = new Shares(limits.max);
  const jobsOf = new WeakMap<WorkerProcess, number>();
  const left = new Set<WorkerProcess>();
  const busy = new Set<WorkerProcess>();
  let starting = 0;
  let isClosed = false;
  let turnOff: (() => void) | undefined;
  /** Workers and places to wait, together: a key that waits for all it can leaves room for others that come to wait. */
  const mayWait = (key: string): boolean =>
    shares.hasRoom(key, { own: waiting.sizeOf(key), all: waiting.size - limits.maxWaiting });

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
        const key = waiting.nextKey(shares);
        if (key === undefined) return;
        waiting.shift(key)?.reject(thrown);
        dispatch();
      },
    );
  };

  const leaseOf = (worker: WorkerProcess, key: string): Lease => {
    let isOver = false;
    const end = (keep: boolean): void => {
      if (isOver) return;
      isOver = true;
      busy.delete(worker);
      shares.leave(key);
      const jobs = (jobsOf.get(worker) ?? 0) + 1;
      jobsOf.set(worker, jobs);
      const isWanted = waiting.size > 0 || idle.length < limits.warm;
      if (keep && isWanted && jobs < MAX_JOBS && !isClosed) idle.push(worker);
      else discard(worker);
      dispatch();
    };
    busy.add(worker);
    shares.take(key);
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
      const key = waiting.nextKey(shares);
      if (key === undefined) return;
      const worker = idle.pop();
      if (worker === undefined) {
        startUpTo(limits.usual);
        if (starting === 0) turnOff ??= setAlarm(clock, PATIENCE_MS, startMore);
        return;
      }
      waiting.shift(key)?.resolve(leaseOf(worker, key));
    }
  };
  const startUpTo = (count: number): void => {
    const wanted = Math.min(waiting.size, count - busy.size, MAX_STARTING);
    while (starting < wanted) startOne();
  };
  const startMore = (): void => {
    turnOff = undefined;
    if (!isClosed && idle.length === 0 && waiting.nextKey(shares) !== undefined) startUpTo(limits.max);
  };

  const free = (key: string): Lease | undefined => {
    const isOpen = !isClosed && left.size < MAX_LEFT && waiting.size === 0;
    const worker = isOpen && shares.hasRoom(key) ? idle.pop() : undefined;
    return worker === undefined ? undefined : leaseOf(worker, key);
  };

  return {
    free,
    take: async (shareKey, { signal }) => {
      signal.throwIfAborted();
      if (isClosed) throw new SandboxError("SHUTTING_DOWN", "the host is stopping");
      if (!mayWait(shareKey)) throw new SandboxError("OVERLOADED", "too many file operations wait");
      if (left.size >= MAX_LEFT) {
        throw new SandboxError("STORAGE_UNAVAILABLE", "too many file operations hang", { admitted: "no" });
      }
      const found = free(shareKey);
      if (found !== undefined) return found;
      return await new Promise<Lease>((resolve, reject) => {
        const onAbort = (): void => {
          waiting.remove(shareKey, waiter);
          reject(SandboxError.from(signal.reason));
        };
        const waiter: Waiter = {
          resolve: (lease) => {
            signal.removeEventListener("abort", onAbort);
            resolve(lease);
          },
          reject: (thrown) => {
            signal.removeEventListener("abort", onAbort);
            reject(SandboxError.from(thrown));
          },
        };
        waiting.push(shareKey, waiter);
        signal.addEventListener("abort", onAbort, { once: true });
        dispatch();
      });
    },
    stats: () => ({ idle: idle.length, busy: busy.size, waiting: waiting.size, left: left.size }),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      const stopped = new SandboxError("SHUTTING_DOWN", "the host is stopping");
      turnOff?.();
      for (const waiter of waiting.drain()) waiter.reject(stopped);
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
