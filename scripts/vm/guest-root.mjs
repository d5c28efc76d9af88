import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { readSystemParts } from "../bootstrap/system-parts.mjs";
import { cachedStep } from "./cache.mjs";
import { installScript, runInside, runNicely } from "./chroot.mjs";

/** Room for the pools of the tests. The file is sparse, and what a run writes goes elsewhere. */
const IMAGE_BYTES = 24 * 1024 ** 3;
/** What Node needs, what the guest's start needs, and what tests ask for beside the system parts. */
const PACKAGES = ["libstdc++6", "libatomic1", "kmod", "procps", "util-linux", "e2fsprogs", "cpio", "xz-utils"];

/** The host's own list of system parts, but for ZFS, which is the kernel's here. */
function listPackages() {
  const parts = readSystemParts().filter(({ name }) => name !== "zfs");
  const of = (isBackport) => parts.filter(({ suite }) => (suite === "backports") === isBackport);
  return {
    release: [...of(false).map((part) => part.package), ...PACKAGES],
    backports: of(true).map((p) => p.package),
  };
}

async function makeImage(draft, { base, kernel, versions, node }) {
  const root = `${draft}.root`;
  rmSync(root, { recursive: true, force: true });
  const { release, backports } = listPackages();
  await runNicely(["cp", "-a", base.root, root]);
  await runInside(root, installScript(release));
  await runInside(root, installScript(backports, versions.runsc));
  await runInside(root, installScript(["zfsutils-linux"], versions.zfs));
  await runNicely(["install", "-D", "-m", "755", node, path.join(root, "usr/local/bin/node")]);
  mkdirSync(path.join(root, "lib/modules"), { recursive: true });
  await runNicely(["cp", "-a", kernel.modules, path.join(root, "lib/modules", versions.kernel)]);
  await runInside(root, `depmod ${versions.kernel}`);
  mkdirSync(path.join(root, "turnbox"), { recursive: true });
  writeFileSync(path.join(root, "etc/hosts"), "127.0.0.1 localhost guest\n::1 localhost\n");
  writeFileSync(path.join(root, "etc/hostname"), "guest\n");
  // The machine's way to its mirrors is no part of the image, nor are the packages themselves.
  for (const name of ["etc/resolv.conf", "etc/apt/apt.conf.d/90machine"])
    rmSync(path.join(root, name), { force: true });
  for (const name of ["var/cache/apt/archives", "var/lib/apt/lists"]) emptyFolder(path.join(root, name));
  writeFileSync(draft, "");
  truncateSync(draft, IMAGE_BYTES);
  await runNicely(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, draft]);
  rmSync(root, { recursive: true });
}

function emptyFolder(folder) {
  for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true, force: true });
}

/** The guest's root filesystem: Debian, the system parts, OpenZFS, Node. Nothing of the project is in it. */
export function describeGuestRoot(cache, { base, kernel, versions, node }) {
  const packages = createHash("sha256").update(JSON.stringify(listPackages())).digest("hex").slice(0, 8);
  const words = [versions.kernel, "zfs", versions.zfs.version, "node", node.version, "runsc", versions.runsc.version];
  const image = path.join(cache, `root-${words.join("-")}-${packages}.ext4`);
  return {
    image,
    step: cachedStep({
      name: `guest's root (runsc ${versions.runsc.version}, Node ${node.version})`,
      target: image,
      remedy: "packages of an old version may have left the mirrors: npm run vm-test -- --refresh",
      make: (draft) => makeImage(draft, { base, kernel, versions, node: node.file }),
    }),
  };
}
