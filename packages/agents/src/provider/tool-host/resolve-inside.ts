import { posix } from "node:path";
import { SandboxError } from "@turnbox/client";
import { invalidArgument } from "@turnbox/client/internal";

/** As many as the system follows. */
const MAX_LINKS = 40;

/** Where the link at a path leads, as it is written there; undefined where no link is. Links before the end are followed. */
export type ReadLink = (path: string) => Promise<string | undefined>;

/** The absolute path behind one that may have links in it. Names that do not exist stay as they are. */
export async function followLinks(path: string, readLink: ReadLink): Promise<string> {
  const pending = namesOf(path);
  let at = "/";
  for (let links = 0; pending.length > 0; ) {
    const name = pending.shift() ?? "";
    if (name === "..") {
      at = posix.dirname(at);
      continue;
    }
    const next = posix.join(at, name);
    const target = await readLink(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) throw new SandboxError("PATH_REFUSED", `${path} leads in circles`, { metadata: { path } });
    if (target.startsWith("/")) at = "/";
    pending.unshift(...namesOf(target));
  }
  return at;
}

/** The same for a path that has to lead into one of the roots, which are without links themselves. */
export async function resolveInside(
  path: string,
  { roots, readLink }: { readonly roots: readonly [string, ...string[]]; readonly readLink: ReadLink },
): Promise<string> {
  if (path === "" || path.includes("\0")) throw invalidArgument("path", "must not be empty and have no NUL");
  const resolved = await followLinks(path.startsWith("/") ? path : `${roots[0]}/${path}`, readLink);
  if (roots.some((root) => isInside(resolved, root))) return resolved;
  throw new SandboxError("PATH_REFUSED", `${path} is outside of ${roots.join(", ")}`, { metadata: { path } });
}

const namesOf = (path: string): string[] => path.split("/").filter((name) => name !== "" && name !== ".");

const isInside = (path: string, root: string): boolean =>
  path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
