import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { runNicely } from "./chroot.mjs";

/** Of the clone's folders, what the guest does not use: history, the tools that built it, and tools that only check it. */
const EXCLUDED = [
  ...["./.git", "./.toolchain", "./bench"],
  ...["typescript@*", "@typescript+*", "typescript-eslint@*", "eslint*", "@biomejs+*", "node-linux-*"].map(
    (name) => `./node_modules/.pnpm/${name}`,
  ),
];
const SPARE_BYTES = 512 * 1024 ** 2;

/**
 * The clone as it is built, with its dependencies, as a disk of one run. Links stay links. `request` tells the guest what
 * to run.
 */
export async function makeProjectDisk(request) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-vm-"));
  const dispose = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", dispose);
  const tree = path.join(folder, "tree");
  const disk = path.join(folder, "project.ext4");
  mkdirSync(tree);
  const copy = 'from=$1 to=$2; shift 2; tar -C "$from" "$@" -cf - . | tar -C "$to" -xf -';
  const excludes = EXCLUDED.map((pattern) => `--exclude=${pattern}`);
  await runNicely(["bash", "-e", "-o", "pipefail", "-c", copy, "bash", root, tree, "--anchored", ...excludes]);
  writeFileSync(path.join(tree, "vm-request.json"), JSON.stringify(request));
  const { stdout } = await runNicely(["du", "-s", "--block-size=1", tree]);
  writeFileSync(disk, "");
  truncateSync(disk, Math.ceil((Number.parseInt(stdout, 10) * 1.2 + SPARE_BYTES) / 4096) * 4096);
  await runNicely(["mkfs.ext4", "-q", "-F", "-d", tree, disk]);
  rmSync(tree, { recursive: true });
  return { disk, folder, dispose };
}
