import type { Kept, StreamName } from "./output.ts";

type Outputs = Readonly<Record<StreamName, Kept>>;

/** A message has at most 16 MiB in either encoding; the rest of an answer needs little of the difference. */
export const MAX_ENCODED_BYTES = 15 * 1024 * 1024;
/** A control character takes six bytes in JSON, and no other byte becomes longer than that. */
const MOST_PER_BYTE = 6;
const STEP_BYTES = 16 * 1024;

/**
 * The outputs cut so that they fit an answer however it is encoded. An output that needs less than its half leaves the
 * rest to the other.
 */
export function fitOutputs(outputs: Outputs, maxBytes: number = MAX_ENCODED_BYTES): Outputs {
  const { stdout, stderr } = outputs;
  if ((stdout.bytes.length + stderr.bytes.length) * MOST_PER_BYTE <= maxBytes) return outputs;
  const firstStderr = cut(stderr, Math.floor(maxBytes / 2));
  const cutStdout = cut(stdout, maxBytes - firstStderr.encodedBytes);
  const cutStderr = cut(stderr, maxBytes - cutStdout.encodedBytes);
  return { stdout: cutStdout.kept, stderr: cutStderr.kept };
}

/** The longest beginning, in whole steps, that has at most this size as JSON, which is never shorter than the binary form. */
function cut(kept: Kept, maxBytes: number): { readonly kept: Kept; readonly encodedBytes: number } {
  const decoder = new TextDecoder();
  let encodedBytes = 0;
  for (let at = 0; at < kept.bytes.length; at += STEP_BYTES) {
    const text = decoder.decode(kept.bytes.subarray(at, at + STEP_BYTES), { stream: true });
    const stepBytes = Buffer.byteLength(JSON.stringify(text)) - 2;
    if (encodedBytes + stepBytes > maxBytes)
      return { kept: { ...kept, bytes: kept.bytes.subarray(0, at) }, encodedBytes };
    encodedBytes += stepBytes;
  }
  return { kept, encodedBytes };
}
