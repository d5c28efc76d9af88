import type { Readable } from "node:stream";

/** The bytes of a stream, which is closed at the first one past the limit. Settles when it is closed, by whomever. */
export async function countBytes(stream: Readable, limit: number): Promise<number> {
  let bytes = 0;
  await read(stream, (chunk) => {
    bytes += chunk.length;
    if (bytes > limit) stream.destroy();
  });
  return bytes;
}

/** The beginning of a stream that is read to its end. */
export async function collectText(stream: Readable, limit: number): Promise<string> {
  let text = "";
  await read(stream, (chunk) => {
    if (text.length < limit) text += chunk.toString("utf8").slice(0, limit - text.length);
  });
  return text;
}

async function read(stream: Readable, onData: (chunk: Buffer) => void): Promise<void> {
  stream.on("data", onData);
  // A pipe that breaks ends like one that is closed.
  stream.on("error", () => undefined);
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
}
