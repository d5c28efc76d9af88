import type { Readable } from "node:stream";

export type StreamName = "stdout" | "stderr";

/** Output as it comes. */
export interface Progress {
  readonly stream: StreamName;
  readonly data: Uint8Array;
  /** Offset of the first byte in its stream. */
  readonly offset: number;
}

/** What is kept of a stream for the result: its first bytes, and how many there were. */
export interface Kept {
  readonly bytes: Buffer;
  readonly totalBytes: number;
}

/**
 * Reads both outputs of a tool to their ends. Each chunk goes to the reader, if there is one, and the tool waits until
 * the reader has taken it; without a reader everything is read at once. The first `keepBytes` of each stream are kept.
 */
export async function drainOutput(
  source: { readonly stdout: Readable; readonly stderr: Readable },
  options: { readonly keepBytes: number; readonly onProgress: ((progress: Progress) => Promise<void>) | null },
): Promise<Record<StreamName, Kept>> {
  const drain = async (stream: StreamName): Promise<Kept> => {
    const kept: Buffer[] = [];
    let keptBytes = 0;
    let offset = 0;
    for await (const chunk of source[stream] as AsyncIterable<Buffer>) {
      if (keptBytes < options.keepBytes) {
        const part = chunk.subarray(0, options.keepBytes - keptBytes);
        kept.push(part);
        keptBytes += part.length;
      }
      const progress = { stream, data: chunk, offset };
      offset += chunk.length;
      await options.onProgress?.(progress);
    }
    return { bytes: Buffer.concat(kept), totalBytes: offset };
  };
  const [stdout, stderr] = await Promise.all([drain("stdout"), drain("stderr")]);
  return { stdout, stderr };
}

/** The kept bytes as text; a character that the cap cut in half is left out, other invalid bytes become U+FFFD. */
export function textOf(kept: Kept): string {
  const text = new TextDecoder().decode(kept.bytes, { stream: kept.totalBytes > kept.bytes.length });
  return text;
}
