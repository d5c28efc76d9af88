import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "@turnbox/core";

/**
 * The digest of a directory tree: of every path in it with its kind, mode, owner and content, and of nothing else, so
 * the same content is the same version wherever and whenever it was made. Special files are `TEMPLATE_INVALID`.
 */
export async function digestTree(root: string, call: { readonly signal: AbortSignal }): Promise<string> {
  const hash = createHash("sha256");
  await addDirectory(hash, { root, path: "" }, call.signal);
  return hash.digest("hex");
}

interface Place {
  readonly root: string;
  /** Relative to the root, without a leading slash. */
  readonly path: string;
}

async function addDirectory(hash: Hash, place: Place, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const names = await readdir(join(place.root, place.path));
  for (const name of names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
    await addEntry(hash, { root: place.root, path: place.path === "" ? name : `${place.path}/${name}` }, signal);
  }
}

async function addEntry(hash: Hash, place: Place, signal: AbortSignal): Promise<void> {
  const absolute = join(place.root, place.path);
  const stats = await lstat(absolute);
  const entry = (kind: string, more = ""): void => {
    hash.update(
      `${JSON.stringify([kind, place.path, (stats.mode & 0o7777).toString(8), stats.uid, stats.gid, more])}\n`,
    );
  };
  if (stats.isSymbolicLink()) entry("link", await readlink(absolute));
  else if (stats.isDirectory()) {
    entry("directory");
    await addDirectory(hash, place, signal);
  } else if (stats.isFile()) {
    entry("file", String(stats.size));
    await pipeline(createReadStream(absolute), hash, { signal, end: false });
  } else {
    throw new SandboxError(
      "TEMPLATE_INVALID",
      `/${place.path} is a special file, only files, directories and links are taken`,
    );
  }
}
