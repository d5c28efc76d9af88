import { createHash } from "node:crypto";
import { chmod, mkdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LayoutNames } from "./layout-names.ts";
import { createLayout, type Layout } from "./layout.ts";
import { MOUNT_LOCK_PATH } from "./mount-lock.ts";

export interface HomeOptions extends LayoutNames {
  readonly home: string;
  readonly mountRoot?: string;
}

/** Makes the directories of a home where they are missing, and says where everything is. Nothing mounted is touched. */
export async function prepareHome(options: HomeOptions): Promise<Layout> {
  await mkdir(options.home, { recursive: true, mode: 0o700 });
  // Only for root: whoever can lock the file can keep everybody from mounting.
  await mkdir(dirname(MOUNT_LOCK_PATH), { recursive: true, mode: 0o700 });
  const home = await realpath(options.home);
  const poolDirectory = join(home, "pool");
  await mkdir(poolDirectory, { recursive: true, mode: 0o700 });
  const mountRoot = await makeMountRoot(options.mountRoot ?? join(home, "mnt"));
  const homeId = createHash("sha256").update(home).digest("hex").slice(0, 32);
  const { poolName, basesDataset, sessionsDataset } = options;
  return createLayout({ homeId, poolDirectory, mountRoot, poolName, basesDataset, sessionsDataset });
}

/** Passable for the sandbox's users, listable for none of them: the names below are not theirs to see. */
async function makeMountRoot(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o711);
  return await realpath(path);
}
