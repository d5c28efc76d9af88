import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno } from "@turnbox/core";
import type { MountTarget } from "./mounts.ts";

/**
 * What was mounted when the daemon died and is not mounted again yet. Written before the dead mounts are taken away: after
 * that nothing else tells of them, and healing may fail halfway, or the service die.
 */
export interface LostMounts {
  read(): Promise<readonly MountTarget[]>;
  write(targets: readonly MountTarget[]): Promise<void>;
  clear(): Promise<void>;
}

export function createLostMounts(directory: string): LostMounts {
  const path = join(directory, "lost-mounts.json");
  return {
    read: async () => {
      try {
        return JSON.parse(await readFile(path, "utf8")) as readonly MountTarget[];
      } catch (thrown) {
        if (hasErrno(thrown, "ENOENT")) return [];
        throw thrown;
      }
    },
    write: async (targets) => {
      await writeFile(`${path}.new`, JSON.stringify(targets), { mode: 0o600 });
      await rename(`${path}.new`, path);
    },
    clear: async () => {
      await rm(path, { force: true });
    },
  };
}
