import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { raceTime, SandboxError } from "@turnbox/core";
import { snapshotNotFound, streamDamaged } from "../../names.ts";
import { ProgressWatch } from "../../progress-watch.ts";
import { readFrames } from "../../stream-frames.ts";
import { storageError } from "../failure.ts";
import { type Outcome, throwIfAborted } from "../zfs-command.ts";
import { asClone, type BegunStream, readBegin, unchanged } from "./begin-record.ts";
import { stdioOf, type StreamingPool } from "./sending.ts";

const DOING = "receiving a snapshot";
/** How long a receiver whose input was closed is waited for before it is killed. */
const STOP_PATIENCE_MS = 10_000;

/** Where a stream goes. */
export interface ReceiveTarget {
  /** What `zfs receive -u` gets. */
  readonly args: readonly string[];
  /** The name that the stream has to bear; its own if that does not matter. */
  readonly renamed?: string;
}

export interface Expected<Target extends ReceiveTarget> {
  readonly guid: string;
  readonly parentGuid: string | null;
  /** Called once it is certain that the stream is of the snapshot that was announced. */
  readonly target: (begun: BegunStream) => Promise<Target>;
}

/**
 * Hands a stream to `zfs receive`, which takes in all of it or leaves nothing; returns where it went. The source is destroyed
 * on every way out. What zfs refuses for want of room fails with `POOL_FULL`.
 */
export async function takeIn<Target extends ReceiveTarget>(
  pool: StreamingPool,
  source: Readable,
  { expected, signal }: { readonly expected: Expected<Target>; readonly signal: AbortSignal },
): Promise<Target> {
  const stopped = new AbortController();
  const stop = (reason: SandboxError): void => {
    stopped.abort(reason);
    source.destroy(reason);
  };
  using watch = new ProgressWatch({
    clock: pool.clock,
    patienceMs: pool.limits.streamPatienceMs,
    onStall: () => {
      stop(new SandboxError("STORAGE_UNAVAILABLE", `${DOING} stood still`, { admitted: "no" }));
    },
  });
  const onAbort = (): void => {
    stop(SandboxError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const begun = await readBegin(noting(readFrames(source), watch));
    if (begun.guid !== expected.guid || begun.parentGuid !== expected.parentGuid)
      throw streamDamaged("it is of another snapshot, or an increment of another one");
    const target = await expected.target(begun);
    await receive(pool, begun, { target, stopped: stopped.signal });
    return target;
  } catch (thrown) {
    throwIfAborted(signal);
    throw thrown instanceof SandboxError ? thrown : streamDamaged("it broke off", thrown);
  } finally {
    signal.removeEventListener("abort", onAbort);
    source.destroy();
  }
}

/** The end of its input makes `zfs receive` end, and clear up, by itself; killed, it would leave that to its daemon. */
async function receive(
  { zfs, clock, limits, flavor }: StreamingPool,
  begun: BegunStream,
  { target, stopped }: { readonly target: ReceiveTarget; readonly stopped: AbortSignal },
): Promise<void> {
  const args = ["receive", "-u", ...target.args];
  const receiver = await zfs.startStreaming({ program: "zfs", args }, { stdio: stdioOf(flavor), signal: stopped });
  receiver.stdout.resume();
  const bytes = target.renamed === undefined ? unchanged(begun) : asClone(begun, target.renamed);
  const fed = await pipeline(bytes, receiver.stdin, { signal: stopped }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  receiver.stdin.destroy();
  const atMostMs = stopped.aborted ? STOP_PATIENCE_MS : limits.streamPatienceMs;
  if ((await raceTime(receiver.outcome, { clock, atMostMs })) === "goes_on") {
    receiver.kill();
    throw new SandboxError("STORAGE_UNAVAILABLE", `${DOING} does not end`, { admitted: "unknown" });
  }
  const outcome = await receiver.outcome;
  if (fed === undefined && outcome.kind === "done") return;
  // What ended the feeding is the cause; a pipe that zfs has closed is not.
  if (stopped.aborted) throw SandboxError.from(stopped.reason);
  if (fed instanceof SandboxError) throw fed;
  throw outcome.kind === "done" ? streamDamaged("it was not read to its end", fed) : failureOf(outcome);
}

function failureOf(outcome: Exclude<Outcome, { kind: "done" }>): SandboxError {
  if (outcome.kind === "unknown")
    return new SandboxError("STORAGE_UNAVAILABLE", `${DOING} was cut off`, { cause: outcome.cause });
  const { failure, stderr } = outcome;
  if (failure === "bad-stream") return streamDamaged("zfs refuses it", new Error(stderr));
  if (failure === "not-found") return snapshotNotFound();
  return storageError(DOING, outcome);
}

async function* noting(
  payloads: AsyncGenerator<Buffer, void, undefined>,
  watch: ProgressWatch,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const payload of payloads) {
    watch.note();
    yield payload;
  }
}
