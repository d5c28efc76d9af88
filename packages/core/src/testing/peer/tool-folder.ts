import { createHash } from "node:crypto";
import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

export interface ToolFolder {
  /** A short name; the folder is named after it and `version`. */
  readonly name: string;
  /** Everything that decides what is in the folder. */
  readonly version: string;
  readonly install: (folder: string) => Promise<void>;
}

/**
 * A folder of this user, outside of the project, with tools by others for tests, where they are installed once. Returns its path,
 * or undefined where they cannot be had, which it says aloud.
 */
export async function provideToolFolder({ name, version, install }: ToolFolder): Promise<string | undefined> {
  const digest = createHash("sha256").update(version).digest("hex").slice(0, 12);
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "turnbox-tests", `${name}-${digest}`);
  const complete = join(folder, "complete");
  try {
    if (await isThere(complete)) return folder;
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await install(folder);
    await writeFile(complete, "");
    return folder;
  } catch (error) {
    process.stderr.write(`\nSKIPPED: ${name} (${version}) cannot be installed: ${String(error)}\n\n`);
    return undefined;
  }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
