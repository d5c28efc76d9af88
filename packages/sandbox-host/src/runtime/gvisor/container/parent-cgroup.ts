import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CgroupMount, readCgroupMounts } from "./cgroup.ts";

/**
 * Bounds the memory of all sandboxes together, so that they leave the service what it needs. The file of the bound has
 * another name in each version; a hierarchy without memory has neither. Answers whether a bound was set.
 */
export async function boundAllSandboxes(
  path: string,
  memoryBytes: number,
  mounts?: readonly CgroupMount[],
): Promise<"bounded" | "not_possible"> {
  const set = await Promise.all((mounts ?? (await readCgroupMounts())).map((mount) => bound(mount, path, memoryBytes)));
  return set.includes(true) ? "bounded" : "not_possible";
}

async function bound({ version, mountPoint }: CgroupMount, path: string, memoryBytes: number): Promise<boolean> {
  const [knows, file] =
    version === 1 ? ["memory.limit_in_bytes", "memory.limit_in_bytes"] : ["cgroup.controllers", "memory.max"];
  const offered = await readFile(join(mountPoint, knows), "utf8").catch(() => undefined);
  if (offered === undefined || (version === 2 && !offered.split(/\s+/).includes("memory"))) return false;
  try {
    // Children have the file only if their parent hands the controller on.
    if (version === 2) await writeFile(join(mountPoint, "cgroup.subtree_control"), "+memory");
    await mkdir(join(mountPoint, path), { recursive: true });
    await writeFile(join(mountPoint, path, file), String(memoryBytes), { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}
