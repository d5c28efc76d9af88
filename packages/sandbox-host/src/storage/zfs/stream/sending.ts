import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { raceTime, SandboxError } from "@turnbox/core";
import { ProgressWatch } from "../../progress-watch.ts";
import { FrameWriter } from "../../stream-frames.ts";
import { storageError } from "../failure.ts";
import type { StreamingCommand } from "../zfs-command.ts";
import type { ZfsPool } from "../zfs-pool.ts";

const DOING = "sending a snapshot";
/** How long a sender that has nowhere to write is waited for. */
const END_PATIENCE_MS = 5000;

/** What streams need of a pool. */
export type StreamingPool = Pick<ZfsPool, "zfs" | "clock" | "limits" | "flavor">;

/** A stream that is being sent. */
export interface Sending {
  readonly stream: Readable;
  /** Never rejects; settles when nothing in the pool is read for it any more. */
  readonly over: Promise<void>;
}

/**
 * Sends a snapshot, by the names of it and of its parent. The stream ends well only if the sender did. It fails when the
 * signal aborts, and when neither side has moved for a time: a snapshot cannot be destroyed as long as it is sent.
 */
export async function startSending(
  { zfs, clock, limits, flavor }: StreamingPool,
  { snapshot, parent }: { readonly snapshot: string; readonly parent: string | undefined },
  signal: AbortSignal,
): Promise<Sending> {
  const args = ["send", ...(parent === undefined ? [] : ["-i", parent]), snapshot];
  const sender = await zfs.startStreaming({ program: "zfs", args }, { stdio: stdioOf(flavor), signal });
  sender.stdin.end();
  const watch = new ProgressWatch({
    clock,
    patienceMs: limits.streamPatienceMs,
    onStall: () => {
      stream.destroy(new SandboxError("STORAGE_UNAVAILABLE", `${DOING} stood still`, { admitted: "no" }));
    },
  });
  const stream = new FrameWriter({
    onProgress: () => {
      watch.note();
    },
    beforeEnd: async () => {
      const outcome = await sender.outcome;
      if (outcome.kind === "unknown")
        throw new SandboxError("STORAGE_UNAVAILABLE", `${DOING} was cut off`, { cause: outcome.cause });
      if (outcome.kind === "refused") throw storageError(DOING, outcome);
    },
  });
  // One that fails when its reader has gone fails for no reader.
  stream.on("error", () => undefined);
  const onAbort = (): void => {
    stream.destroy(SandboxError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const over = passOn(sender, stream).finally(async () => {
    watch[Symbol.dispose]();
    signal.removeEventListener("abort", onAbort);
    await raceTime(sender.outcome, { clock, atMostMs: END_PATIENCE_MS });
  });
  return { stream, over };
}

/** Sockets do on zfs-fuse, whose daemon reads and writes them itself; the kernel wants pipes, which have no position. */
export function stdioOf(flavor: ZfsPool["flavor"]): "sockets" | "fifos" {
  return flavor === "openzfs" ? "fifos" : "sockets";
}

/** Never rejects: what fails is the stream. */
async function passOn(sender: StreamingCommand, stream: FrameWriter): Promise<void> {
  try {
    await pipeline(sender.stdout, stream);
  } catch {
    // In this order: the daemon of zfs-fuse writes on for a client that was killed, until its pipe is closed.
    sender.stdout.destroy();
    sender.kill();
  }
}
