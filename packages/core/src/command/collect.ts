import type { Readable } from "node:stream";

/** What was kept of a stream. */
export interface Collected {
  readonly text: string;
  readonly droppedBytes: number;
}

export const NO_OUTPUT: Collected = { text: "", droppedBytes: 0 };

/** Reads a stream to its end and keeps the first `limit` bytes; the rest is counted. */
export async function collect(stream: Readable, limit: number): Promise<Collected> {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let droppedBytes = 0;
  stream.on("data", (chunk: Buffer) => {
    const room = Math.max(0, limit - keptBytes);
    if (room > 0) kept.push(chunk.subarray(0, room));
    keptBytes += Math.min(room, chunk.length);
    droppedBytes += Math.max(0, chunk.length - room);
  });
  // A pipe that breaks ends like one that is closed: what came before it counts.
  stream.on("error", () => undefined);
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
  return { text: Buffer.concat(kept).toString("utf8"), droppedBytes };
}
