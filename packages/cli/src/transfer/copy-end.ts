import { invalidArgument } from "@turnbox/core";

/** One end of a copy. */
export type CopyEnd =
  | { readonly at: "here"; readonly path: string }
  | { readonly at: "sandbox"; readonly reference: string; readonly path: string };

/**
 * `ID:PATH` is in a sandbox: the id ends at the last colon before the first slash, since ids have colons too. Everything
 * else is here, also what begins with a slash or a dot.
 */
export function parseCopyEnd(word: string): CopyEnd {
  const slash = word.indexOf("/");
  const colon = word.lastIndexOf(":", slash < 0 ? word.length : slash);
  if (colon < 0 || word.startsWith(".") || word.startsWith("/")) return { at: "here", path: word };
  if (colon === 0) throw invalidArgument("place", `${JSON.stringify(word)} names no sandbox before its colon`);
  const path = word.slice(colon + 1);
  return { at: "sandbox", reference: word.slice(0, colon), path: path === "" ? "/workspace" : path };
}
