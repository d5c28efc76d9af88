import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { requireCommand } from "../../bootstrap/command.mjs";

const TIMEOUT_MS = 300_000;
const ask = async (...argv) => (await requireCommand(argv, { env: process.env, timeoutMs: TIMEOUT_MS })).stdout;

/** Whether OpenZFS itself works here, without anything of ours: pool, snapshot, clone, rollback, diff. */
export async function smoke() {
  const folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-smoke-"));
  const image = path.join(folder, "pool.img");
  writeFileSync(image, "");
  truncateSync(image, 256 * 1024 ** 2);
  try {
    await ask("zpool", "create", "-o", "cachefile=none", "-O", `mountpoint=${folder}/mnt`, "smoke", image);
    await ask("zfs", "create", "smoke/a");
    writeFileSync(`${folder}/mnt/a/kept`, "before");
    await ask("zfs", "snapshot", "smoke/a@s");
    writeFileSync(`${folder}/mnt/a/kept`, "after");
    writeFileSync(`${folder}/mnt/a/added`, "");
    await ask("zfs", "clone", "smoke/a@s", "smoke/b");
    const cloned = readFileSync(`${folder}/mnt/b/kept`, "utf8");
    if (cloned !== "before") throw new Error(`the clone of the snapshot holds "${cloned}"`);
    const diff = await ask("zfs", "diff", "-FH", "smoke/a@s", "smoke/a");
    if (!diff.includes(`+\tF\t${folder}/mnt/a/added`)) throw new Error(`zfs diff does not tell the new file: ${diff}`);
  } finally {
    await ask("zpool", "destroy", "smoke");
    rmSync(folder, { recursive: true });
  }
}
