import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "@turnbox/core";

/**
 * The digest of a directory tree: of every path in it with its kind, mode, owner and content, and of nothing else, so
 * the same content is the same version wherever and whenever it was made. Special
 * files and more than `maxBytes` are `TEMPLATE_INVALID`.
 */
export async function digestTree(
  root: string,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<string> {
  const walk: Walk = { hash: createHash("sha256"), root, leftBytes: options.maxBytes, signal: options.signal };
  await addDirectory(walk, "");
  return walk.hash.digest("hex");
}

interface Walk {
  readonly hash: Hash;
  readonly root: string;
  readonly signal: AbortSignal;
  /** What files may still have; holes count, because a copy may fill them. */
  leftBytes: number;
}

/** Paths are relative to the root, without a leading slash. */
async function addDirectory(walk: Walk, path: string): Promise<void> {
  walk.signal.throwIfAborted();
  const names = await readdir(join(walk.root, path));
  for (const name of names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
    await addEntry(walk, path === "" ? name : `${path}/${name}`);
  }
}

async function addEntry(walk: Walk, path: string): Promise<void> {
  const absolute = join(walk.root, path);
  const stats = await lstat(absolute);
  const entry = (kind: string, more = ""): void => {
    const mode = (stats.mode & 0o7777).toString(8);
    walk.hash.update(`${JSON.stringify([kind, path, mode, stats.uid, stats.gid, more])}\n`);
  };
  if (stats.isSymbolicLink()) entry("link", await readlink(absolute));
  else if (stats.isDirectory()) {
    entry("directory");
    await addDirectory(walk, path);
  } else if (stats.isFile()) {
    walk.leftBytes -= stats.size;
    if (walk.leftBytes < 0) throw new SandboxError("TEMPLATE_INVALID", "the template is larger than this host takes");
    entry("file", String(stats.size));
    await pipeline(createReadStream(absolute), walk.hash, { signal: walk.signal, end: false });
  } else {
    throw new SandboxError(
      "TEMPLATE_INVALID",
      `/${path} is a special file, only files, directories and links are taken`,
    );
  }
}
