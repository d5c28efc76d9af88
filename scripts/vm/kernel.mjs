import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { cachedStep } from "./cache.mjs";
import { installScript, runInside, runNicely } from "./chroot.mjs";

const COMPILER = ["dkms", "gcc", "make", "libc6-dev", "kmod"];

/** The modules are built in a root of their own, whose only kernel headers are those of the guest. */
async function makeKernel(draft, { base, kernel, zfs }) {
  mkdirSync(draft);
  const root = path.join(draft, "root");
  await runNicely(["cp", "-a", base.root, root]);
  await runInside(root, installScript([`linux-headers-${kernel}`, ...COMPILER]));
  // Unpacked, not installed: nothing in the root is meant to boot.
  await runInside(root, `cd /tmp && apt-get download linux-image-${kernel} && dpkg -x linux-image-*.deb /tmp/image`);
  await runInside(root, installScript(["zfs-dkms"], zfs));
  await runNicely(["cp", path.join(root, `tmp/image/boot/vmlinuz-${kernel}`), path.join(draft, "vmlinuz")]);
  const built = path.join(root, "lib/modules", kernel, "updates/dkms");
  const modules = path.join(root, "tmp/image/lib/modules", kernel);
  await runNicely(["cp", "-a", built, path.join(modules, "zfs")]);
  await runNicely(["cp", "-a", modules, path.join(draft, "modules")]);
  rmSync(root, { recursive: true });
}

/** The guest's kernel, and its modules with those of OpenZFS. */
export function describeKernel(cache, { base, versions }) {
  const { kernel, zfs } = versions;
  const folder = path.join(cache, `kernel-${kernel}-zfs-${zfs.version}`);
  return {
    folder,
    image: path.join(folder, "vmlinuz"),
    modules: path.join(folder, "modules"),
    step: cachedStep({
      name: `kernel ${kernel} with OpenZFS ${zfs.version} (some minutes)`,
      target: folder,
      remedy: "packages of an old version may have left the mirrors: npm run vm-test -- --refresh",
      make: (draft) => makeKernel(draft, { base, kernel, zfs }),
    }),
  };
}
