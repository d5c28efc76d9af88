import { installWithApt } from "../bootstrap/apt.mjs";
import { describeMachine, describeMissing, refusal } from "../bootstrap/system.mjs";
import { findMissingParts } from "../bootstrap/system-parts.mjs";

const part = (command, name, neededFor) => ({
  name,
  commands: [command],
  package: name,
  suite: "release",
  neededFor,
  without: "npm run vm-test does not run; nothing else needs it",
});

/** What this machine needs to build and boot the guest. OpenZFS is not among it: its packages exclude zfs-fuse. */
const PARTS = [
  part("qemu-system-x86_64", "qemu-system-x86", "running the virtual machine"),
  part("debootstrap", "debootstrap", "the root filesystems"),
  part("cpio", "cpio", "the initramfs"),
  { ...part("busybox", "busybox-static", "the initramfs"), static: true },
  part("mkfs.ext4", "e2fsprogs", "the disks"),
  part("unshare", "util-linux", "building in a root filesystem of its own"),
];

/** Sees to them, or throws what is missing and how to get it. */
export async function provideHostParts({ env, print }) {
  const machine = describeMachine(env);
  if (machine.platform !== "linux" || process.arch !== "x64")
    throw new Error(`the virtual machine is for Linux on x64 only, this is ${machine.platform} on ${process.arch}`);
  if (!machine.isRoot) throw new Error("building the virtual machine needs root");
  let missing = await findMissingParts(PARTS, env);
  if (missing.length > 0 && refusal(machine) === undefined) {
    await installWithApt(
      missing.map((found) => found.part),
      { env, codename: machine.os.VERSION_CODENAME ?? "", print },
    );
    missing = await findMissingParts(PARTS, env);
  }
  if (missing.length > 0) throw new Error(`\n${describeMissing(missing, machine).join("\n")}`);
}
