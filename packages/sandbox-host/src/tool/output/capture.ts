import type { Readable } from "node:stream";

export type StreamName = "stdout" | "stderr";

/** A piece of output as the tool writes it. */
export interface Progress {
  readonly stream: StreamName;
  readonly data: Uint8Array;
  /** Offset of the first byte in its stream. */
  readonly offset: number;
}

/** What the result of a call keeps of a stream: its first bytes, and how many bytes there were. */
export interface Captured {
  readonly bytes: Buffer;
  readonly totalBytes: number;
}

/**
 * Reads both outputs of a tool to their ends. Each chunk goes to `onProgress`, and the next one is read when its promise has
 * settled; without `onProgress` everything is read at once. The first `keepBytes` of each stream are captured.
 */
export async function captureOutput(
  source: { readonly stdout: Readable; readonly stderr: Readable },
  options: { readonly keepBytes: number; readonly onProgress: ((progress: Progress) => Promise<void>) | null },
): Promise<Record<StreamName, Captured>> {
  const capture = async (stream: StreamName): Promise<Captured> => {
    const captured: Buffer[] = [];
    let capturedBytes = 0;
    let offset = 0;
    for await (const chunk of source[stream] as AsyncIterable<Buffer>) {
      if (capturedBytes < options.keepBytes) {
        const part = chunk.subarray(0, options.keepBytes - capturedBytes);
        captured.push(part);
        capturedBytes += part.length;
      }
      const progress = { stream, data: chunk, offset };
      offset += chunk.length;
      await options.onProgress?.(progress);
    }
    return { bytes: Buffer.concat(captured), totalBytes: offset };
  };
  const [stdout, stderr] = await Promise.all([capture("stdout"), capture("stderr")]);
  return { stdout, stderr };
}

/** The captured bytes as text. A character that the bound cuts in half is left out; other invalid bytes become U+FFFD. */
export function textOf({ bytes, totalBytes }: Captured): string {
  return new TextDecoder().decode(bytes, { stream: totalBytes > bytes.length });
}

type Outputs = Readonly<Record<StreamName, Captured>>;

/** A message has at most 16 MiB in either encoding; the rest of a response needs little of the difference. */
export const MAX_ENCODED_BYTES = 15 * 1024 * 1024;
/** A control character takes six bytes in JSON, and no other byte becomes longer than that. */
const MOST_PER_BYTE = 6;
const STEP_BYTES = 16 * 1024;

/**
 * The outputs cut so that they fit a response however it is encoded. An output that needs less than its half leaves the
 * rest to the other.
 */
export function fitOutputs(outputs: Outputs, maxBytes: number = MAX_ENCODED_BYTES): Outputs {
  const { stdout, stderr } = outputs;
  if ((stdout.bytes.length + stderr.bytes.length) * MOST_PER_BYTE <= maxBytes) return outputs;
  const firstStderr = cut(stderr, Math.floor(maxBytes / 2));
  const cutStdout = cut(stdout, maxBytes - firstStderr.encodedBytes);
  const cutStderr = cut(stderr, maxBytes - cutStdout.encodedBytes);
  return { stdout: cutStdout.captured, stderr: cutStderr.captured };
}

/** The longest beginning, in whole steps, that has at most this size as JSON, which is never shorter than the binary form. */
function cut(captured: Captured, maxBytes: number): { readonly captured: Captured; readonly encodedBytes: number } {
  const { bytes } = captured;
  const decoder = new TextDecoder();
  let encodedBytes = 0;
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    const text = decoder.decode(bytes.subarray(at, at + STEP_BYTES), { stream: true });
    const stepBytes = Buffer.byteLength(JSON.stringify(text)) - 2;
    if (encodedBytes + stepBytes > maxBytes)
      return { captured: { ...captured, bytes: bytes.subarray(0, at) }, encodedBytes };
    encodedBytes += stepBytes;
  }
  return { captured, encodedBytes };
}
