import { type Call, type Clock, raceTime, SandboxError, setAlarm, systemClock } from "@turnbox/core";
import { FairQueue } from "../share/fair-queue.ts";
import { Shares } from "../share/shares.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** How many workers there are for one kind of work. */
export interface LaneLimits {
  /** Idle workers that are kept for the next job. */
  readonly warm: number;
  /** Up to this number, workers are started as soon as they are wanted; beyond it, only after a job has waited for `PATIENCE_MS`. */
  readonly usual: number;
  readonly max: number;
  /** Jobs that wait for a worker; more are refused. */
  readonly maxWaiting: number;
}

/** A worker for one job. Exactly one of the two methods ends it; a second call does nothing. */
export interface Lease {
  readonly worker: WorkerProcess;
  /** The worker is free for the next job. */
  release(): void;
  /** The worker is killed; its end is not waited for. */
  discard(): void;
}

export interface LaneStats {
  readonly idle: number;
  readonly busy: number;
  readonly waiting: number;
  /** Workers that were killed and have not ended. */
  readonly left: number;
}

type Waiter = PromiseWithResolvers<Lease>;

const MAX_LEFT = 64;
/** To start a worker costs more than most jobs, and a worker that becomes free meanwhile takes the next job as well. */
const MAX_STARTING = 2;
/** How long a job waits before more than the usual workers are started. */
const PATIENCE_MS = 100;
/** A worker is replaced after this many jobs, so that whatever it accumulates is bounded. */
const MAX_JOBS = 10_000;
/** A stop of the service waits so long for the end of a worker: one that hangs in the storage may never end. */
const END_MS = 1000;

/**
 * The workers of one kind of work. `shareKey` says for which session a job is: the keys share workers and the queue by the
 * rule of `Shares`, and the key that holds least is next, so a key whose files hang or that asks for too much leaves enough
 * to the others. A killed worker that does not end is counted as left; it is no longer one of the `max`.
 */
export class Lane implements AsyncDisposable {
  readonly #start: () => Promise<WorkerProcess>;
  readonly #limits: LaneLimits;
  readonly #clock: Clock;
  readonly #shares: Shares;
  readonly #waiting = new FairQueue<Waiter>();
  readonly #idle: WorkerProcess[] = [];
  readonly #busy = new Set<WorkerProcess>();
  readonly #left = new Set<WorkerProcess>();
  readonly #jobsOf = new WeakMap<WorkerProcess, number>();
  #starting = 0;
  #isClosed = false;
  /** Turns off the alarm after which more than the usual workers are started. */
  #turnOff: (() => void) | undefined;

  /** `clock`: default is the system's. */
  constructor(start: () => Promise<WorkerProcess>, limits: LaneLimits, clock: Clock = systemClock) {
    this.#start = start;
    this.#limits = limits;
    this.#clock = clock;
    this.#shares = new Shares(limits.max);
  }

  /** A worker that is free now; undefined if there is none, and if `take` would refuse. */
  free(shareKey: string): Lease | undefined {
    const isOpen = !this.#isClosed && this.#left.size < MAX_LEFT && this.#waiting.size === 0;
    const worker = isOpen && this.#shares.hasRoom(shareKey) ? this.#idle.pop() : undefined;
    return worker === undefined ? undefined : this.#leaseOf(worker, shareKey);
  }

  /** Waits for a worker. `OVERLOADED` if too many jobs wait, `STORAGE_UNAVAILABLE` if too many killed workers are left. */
  async take(shareKey: string, { signal }: Call): Promise<Lease> {
    signal.throwIfAborted();
    if (this.#isClosed) throw stopping();
    if (!this.#mayWait(shareKey)) throw new SandboxError("OVERLOADED", "too many file operations wait");
    if (this.#left.size >= MAX_LEFT) {
      throw new SandboxError("STORAGE_UNAVAILABLE", "too many file operations hang", { admitted: "no" });
    }
    return this.free(shareKey) ?? (await this.#wait(shareKey, signal));
  }

  stats(): LaneStats {
    return { idle: this.#idle.length, busy: this.#busy.size, waiting: this.#waiting.size, left: this.#left.size };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#turnOff?.();
    for (const waiter of this.#waiting.drain()) waiter.reject(stopping());
    const all = [...this.#idle.splice(0), ...this.#busy];
    for (const worker of all) worker.kill();
    const limit = { clock: this.#clock, atMostMs: END_MS };
    await Promise.all([...all, ...this.#left].map((worker) => raceTime(worker.gone, limit)));
  }

  /** Counts workers and the queue together: a key that waits for all it may have leaves room in the queue to the others. */
  #mayWait(key: string): boolean {
    const { size } = this.#waiting;
    return this.#shares.hasRoom(key, { own: this.#waiting.sizeOf(key), all: size - this.#limits.maxWaiting });
  }

  async #wait(key: string, signal: AbortSignal): Promise<Lease> {
    const waiter: Waiter = Promise.withResolvers();
    const onAbort = (): void => {
      this.#waiting.remove(key, waiter);
      waiter.reject(signal.reason);
    };
    this.#waiting.push(key, waiter);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      this.#dispatch();
      return await waiter.promise;
    } catch (thrown) {
      throw SandboxError.from(thrown);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Gives idle workers to the jobs that wait, and starts workers for those that are left. */
  #dispatch(): void {
    while (!this.#isClosed) {
      const key = this.#waiting.nextKey(this.#shares);
      if (key === undefined) return;
      const worker = this.#idle.pop();
      if (worker === undefined) {
        this.#startUpTo(this.#limits.usual);
        if (this.#starting === 0) this.#turnOff ??= setAlarm(this.#clock, PATIENCE_MS, this.#startMore);
        return;
      }
      this.#waiting.shift(key)?.resolve(this.#leaseOf(worker, key));
    }
  }

  readonly #startMore = (): void => {
    this.#turnOff = undefined;
    const isWanted = this.#idle.length === 0 && this.#waiting.nextKey(this.#shares) !== undefined;
    if (!this.#isClosed && isWanted) this.#startUpTo(this.#limits.max);
  };

  #startUpTo(count: number): void {
    const wanted = Math.min(this.#waiting.size, count - this.#busy.size, MAX_STARTING);
    while (this.#starting < wanted) this.#startOne();
  }

  #startOne(): void {
    this.#starting += 1;
    this.#start().then(
      (worker) => {
        this.#starting -= 1;
        if (this.#isClosed) this.#discard(worker);
        else this.#idle.push(worker);
        const forget = (): void => {
          const at = this.#idle.indexOf(worker);
          if (at >= 0) this.#idle.splice(at, 1);
        };
        worker.gone.then(forget, forget);
        this.#dispatch();
      },
      (thrown: unknown) => {
        this.#starting -= 1;
        const key = this.#waiting.nextKey(this.#shares);
        if (key === undefined) return;
        this.#waiting.shift(key)?.reject(thrown);
        this.#dispatch();
      },
    );
  }

  #leaseOf(worker: WorkerProcess, key: string): Lease {
    this.#busy.add(worker);
    this.#shares.take(key);
    let isOver = false;
    const end = (keep: boolean): void => {
      if (isOver) return;
      isOver = true;
      this.#giveBack(worker, key, keep);
    };
    return {
      worker,
      release: () => {
        end(true);
      },
      discard: () => {
        end(false);
      },
    };
  }

  #giveBack(worker: WorkerProcess, key: string, keep: boolean): void {
    this.#busy.delete(worker);
    this.#shares.leave(key);
    const jobs = (this.#jobsOf.get(worker) ?? 0) + 1;
    this.#jobsOf.set(worker, jobs);
    const isWanted = this.#waiting.size > 0 || this.#idle.length < this.#limits.warm;
    if (keep && isWanted && jobs < MAX_JOBS && !this.#isClosed) this.#idle.push(worker);
    else this.#discard(worker);
    this.#dispatch();
  }

  #discard(worker: WorkerProcess): void {
    this.#left.add(worker);
    worker.gone.finally(() => this.#left.delete(worker)).catch(() => undefined);
    worker.kill();
  }
}

function stopping(): SandboxError {
  return new SandboxError("SHUTTING_DOWN", "the host is stopping");
}
