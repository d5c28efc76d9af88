import type { Side } from "./comparison.ts";
import { readAt } from "./content.ts";
import type { Tree } from "./tree.ts";

/** The content of a file, as far as it is text and not too large. */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" }
  | { readonly kind: "large" };

/** How much of a file tells whether it is text. */
const SNIFF_BYTES = 8 * 1024;

/** Reads a file. One with a NUL near its beginning, or that is no UTF-8, is binary. */
export function readText(tree: Tree, { path, entry }: Side, maxBytes: number): FileText {
  if (entry.sizeBytes === 0) return { kind: "text", text: "" };
  using file = tree.open(path);
  const read = (bytes: number): Buffer => {
    const content = Buffer.alloc(Math.min(bytes, entry.sizeBytes));
    return content.subarray(0, readAt(file.descriptor, content, 0));
  };
  const start = read(SNIFF_BYTES);
  if (start.includes(0) || decode(start, "beginning") === null) return { kind: "binary" };
  if (entry.sizeBytes > maxBytes) return { kind: "large" };
  const text = decode(read(maxBytes), "whole");
  return text === null ? { kind: "binary" } : { kind: "text", text };
}

/** Null where it is no UTF-8. The last character of a beginning may be cut. */
function decode(bytes: Buffer, part: "beginning" | "whole"): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: part === "beginning" });
  } catch {
    return null;
  }
}
