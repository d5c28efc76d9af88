import { SandboxError } from "@turnbox/client";
import { invalidArgument } from "@turnbox/client/internal";
import type { TextRange } from "./tool-host.ts";

/** The longest text that is handed out at once. */
export const MAX_TEXT_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * The lines of a range with their line ends, so that ranges put together are the file. Reads no further than the last of
 * them.
 */
export async function readTextRange(content: AsyncIterable<Uint8Array>, range: TextRange): Promise<string> {
  const { line = 1, limit = Number.POSITIVE_INFINITY } = range;
  if (!(line >= 1)) throw invalidArgument("line", "must be 1 or more");
  if (!(limit >= 0)) throw invalidArgument("limit", "must be 0 or more");
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let skip = line - 1;
  let left = limit;
  if (left === 0) return "";
  for await (const data of content) {
    const [start, skipped] = afterLines(data, 0, skip);
    skip -= skipped;
    if (skip > 0) continue;
    const [end, taken] = afterLines(data, start, left);
    left -= taken;
    kept.push(data.slice(start, end));
    keptBytes += end - start;
    if (keptBytes > MAX_TEXT_BYTES) throw tooLong();
    if (left === 0) break;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(kept));
}

/** The offset behind so many line ends from `from` on, or the end of the data; and how many were passed. */
function afterLines(data: Uint8Array, from: number, count: number): readonly [offset: number, passed: number] {
  let at = from;
  for (let passed = 0; passed < count; passed += 1) {
    const end = data.indexOf(NEWLINE, at);
    if (end === -1) return [data.length, passed];
    at = end + 1;
  }
  return [at, count];
}

const tooLong = (): SandboxError =>
  new SandboxError("INVALID_ARGUMENT", `limit: the text is longer than ${MAX_TEXT_BYTES} bytes; ask for fewer lines`, {
    metadata: { field: "limit", rule: `at most ${MAX_TEXT_BYTES} bytes` },
  });
