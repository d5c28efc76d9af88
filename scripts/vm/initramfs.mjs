import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { digest, listFiles } from "../bootstrap/stamp.mjs";
import { cachedStep } from "./cache.mjs";
import { runNicely } from "./chroot.mjs";

/** What it takes to see a virtio disk, in the order in which they depend on each other. ext4 is in the kernel itself. */
const MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

async function makeInitramfs(draft, { modules, script }) {
  const folder = `${draft}.folder`;
  rmSync(folder, { recursive: true, force: true });
  for (const name of ["bin", "dev", "proc", "sys", "root", "modules"])
    mkdirSync(path.join(folder, name), { recursive: true });
  copyFileSync("/bin/busybox", path.join(folder, "bin/busybox"));
  copyFileSync(script, path.join(folder, "init"));
  chmodSync(path.join(folder, "init"), 0o755);
  const present = listFiles(path.join(modules, "kernel/drivers"));
  // A module that the kernel has built in has no file.
  const wanted = MODULES.flatMap((name) => present.filter((file) => path.basename(file) === `${name}.ko`));
  for (const [index, file] of wanted.entries()) {
    copyFileSync(file, path.join(folder, "modules", `${index}-${path.basename(file)}`));
  }
  const pack = 'cd "$1" && find . | cpio --quiet -o -H newc | gzip -1 > "$2"';
  await runNicely(["sh", "-ec", pack, "sh", folder, draft]);
  rmSync(folder, { recursive: true });
}

/** The first root of the guest: it finds the two disks and hands over to them. */
export function describeInitramfs({ kernel }) {
  const script = path.join(import.meta.dirname, "guest/first-init.sh");
  const version = digest([script], { base: import.meta.dirname }).slice(0, 8);
  const image = path.join(kernel.folder, `initramfs-${version}.gz`);
  return {
    image,
    step: cachedStep({
      name: "initramfs",
      target: image,
      remedy: "install busybox-static and cpio",
      make: (draft) => makeInitramfs(draft, { modules: kernel.modules, script }),
    }),
  };
}
