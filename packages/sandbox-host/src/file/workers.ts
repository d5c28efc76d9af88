import { type Call, type Clock, type CommandRunner, createDeadline, systemClock } from "@turnbox/core";
import type { InputOf, OperationName, OutputOf } from "./file-operations.ts";
import { type JobRun, type Piece, startJob } from "./job-run.ts";
import { Lane, type LaneLimits, type LaneStats, type Lease } from "./lane.ts";
import { startWorkerProcess } from "./worker-process.ts";

/**
 * File workers: processes that do the operations of `file-worker/main.ts` on the files of sessions, so that nothing an agent makes
 * of its files holds up this process. Each does one job at a time, is kept for the next one, and is killed and replaced
 * if a job's deadline passes or its caller's signal aborts.
 *
 *     const { entry } = await workers.run("stat", { root, input: { path } }, { signal });
 *
 * `root` is the directory that the session's head is mounted at. Failures are `SandboxError`s. An operation that sends pieces is read with
 * `stream`, as slowly as the reader likes; a `body` is sent as fast as the operation takes it.
 */
export interface FileWorkers extends AsyncDisposable {
  /** Does a job to its end. The next piece is read when `onPiece` has returned for the last one. */
  run<Name extends OperationName>(
    name: Name,
    job: FileJob<Name> & { readonly onPiece?: (piece: Piece) => Promise<void> | void },
    call: Call,
  ): Promise<OutputOf<Name>>;
  /** Starts a job whose pieces the caller reads; the caller disposes it. */
  stream<Name extends OperationName>(name: Name, job: FileJob<Name>, call: Call): Promise<JobRun<OutputOf<Name>>>;
  stats(): Readonly<Record<LaneName, LaneStats>>;
}

export interface FileJob<Name extends OperationName> {
  /** The directory that is the session's root, on this machine. */
  readonly root: string;
  /** The session whose share of the workers the job takes. Default is the root. */
  readonly shareKey?: string;
  /** The filesystem that the root has to be on. Default is any. */
  readonly device?: number;
  readonly input: InputOf<Name>;
  /** Bytes for an operation that reads a body. */
  readonly body?: AsyncIterable<Uint8Array>;
  /** From the request for a worker to the end of the job. Default 30 s. */
  readonly deadlineMs?: number;
  /** Default `quick`. */
  readonly lane?: LaneName;
}

/**
 * `quick`: ends by itself. `transfer`: as slow as a client. `watch`: for as long as a client wants. `journal`: very many
 * small jobs of the service itself.
 */
export type LaneName = "quick" | "transfer" | "watch" | "journal";

const DEFAULT_DEADLINE_MS = 30_000;
const LANES: Readonly<Record<LaneName, LaneLimits>> = {
  quick: { warm: 3, usual: 4, max: 16, maxWaiting: 512 },
  transfer: { warm: 1, usual: 24, max: 24, maxWaiting: 128 },
  watch: { warm: 0, usual: 32, max: 32, maxWaiting: 0 },
  journal: { warm: 2, usual: 2, max: 4, maxWaiting: 4096 },
};

export function createFileWorkers({
  runner,
  nodePath,
  clock = systemClock,
}: {
  readonly runner: CommandRunner;
  readonly nodePath: string;
  readonly clock?: Clock;
}): FileWorkers {
  const start = () => startWorkerProcess({ runner, nodePath });
  const lanes = {
    quick: new Lane(start, LANES.quick, clock),
    transfer: new Lane(start, LANES.transfer, clock),
    watch: new Lane(start, LANES.watch, clock),
    journal: new Lane(start, LANES.journal, clock),
  };

  const stream: FileWorkers["stream"] = async (
    name,
    { root, shareKey = root, device, input, body, deadlineMs, lane = "quick" },
    call,
  ) => {
    call.signal.throwIfAborted();
    const deadline = createDeadline({ clock, ms: deadlineMs ?? DEFAULT_DEADLINE_MS, signal: call.signal });
    const lease = lanes[lane].free(shareKey) ?? (await takeUntil(deadline, lanes[lane].take(shareKey, deadline)));
    const job = {
      kind: "job",
      name,
      root,
      device: device ?? null,
      input,
      body: body === undefined ? "none" : "follows",
    } as const;
    return startJob<OutputOf<typeof name>>(lease, job, { deadline, body });
  };

  return {
    stream,
    run: async <Name extends OperationName>(
      name: Name,
      job: Parameters<FileWorkers["run"]>[1] & FileJob<Name>,
      call: Call,
    ): Promise<OutputOf<Name>> => {
      using run = await stream(name, job, call);
      for (let piece = await run.next(); piece !== null; piece = await run.next()) await job.onPiece?.(piece);
      return run.output;
    },
    stats: () => ({
      quick: lanes.quick.stats(),
      transfer: lanes.transfer.stats(),
      watch: lanes.watch.stats(),
      journal: lanes.journal.stats(),
    }),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(Object.values(lanes).map((lane) => lane[Symbol.asyncDispose]()));
    },
  };
}

/** Disposes the deadline if no worker is taken. */
async function takeUntil(deadline: Disposable, taking: Promise<Lease>): Promise<Lease> {
  try {
    return await taking;
  } catch (thrown) {
    deadline[Symbol.dispose]();
    throw thrown;
  }
}
