import { createHash } from "node:crypto";
import { access, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

export interface ToolFolder {
  /** A short name; the folder is named after it and `version`. */
  readonly name: string;
  /** Everything that decides what is in the folder. */
  readonly version: string;
  /** Called with a folder of another name, which is renamed when all is in it. */
  readonly install: (folder: string) => Promise<void>;
}

/**
 * A folder of this user, outside of the project, with tools by others for tests, where they are installed once. Returns its path,
 * or undefined if they cannot be had, which it prints.
 */
export async function provideToolFolder({ name, version, install }: ToolFolder): Promise<string | undefined> {
  const digest = createHash("sha256").update(version).digest("hex").slice(0, 12);
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "turnbox-tests", `${name}-${digest}`);
  const complete = join(folder, "complete");
  try {
    if (await isThere(complete)) return folder;
    await mkdir(dirname(folder), { recursive: true });
    // Test files that run at the same time may all install it; the first one that is ready gives it its name.
    const own = await mkdtemp(`${folder}.`);
    try {
      await install(own);
      await writeFile(join(own, "complete"), "");
      if (!(await isThere(complete))) await rm(folder, { recursive: true, force: true });
      await rename(own, folder).catch(async (error: unknown) => {
        if (!(await isThere(complete))) throw error;
      });
    } finally {
      await rm(own, { recursive: true, force: true });
    }
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
