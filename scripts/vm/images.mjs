import { rmSync } from "node:fs";
import path from "node:path";
import { takeLock } from "../bootstrap/lock.mjs";
import { runStep } from "../bootstrap/step.mjs";
import { describeBase } from "./base.mjs";
import { describeGuestRoot } from "./guest-root.mjs";
import { describeInitramfs } from "./initramfs.mjs";
import { describeKernel } from "./kernel.mjs";

/** Brings the images of the guest, from the cache where they are there. `node` is the Node that runs in it. */
export async function provideImages({ cache, node, isRefresh, print }) {
  const release = await takeLock(path.join(cache, "lock"), {
    print: () => print("  waiting for another run that builds the virtual machine"),
  });
  try {
    const base = describeBase(cache);
    if (isRefresh) rmSync(base.folder, { recursive: true, force: true });
    await runStep({ ...base.step, print });
    const versions = base.versions();
    const kernel = describeKernel(cache, { base, versions });
    await runStep({ ...kernel.step, print });
    const initramfs = describeInitramfs({ kernel });
    await runStep({ ...initramfs.step, print });
    const guestRoot = describeGuestRoot(cache, { base, kernel, versions, node });
    await runStep({ ...guestRoot.step, print });
    return { kernel: kernel.image, initramfs: initramfs.image, rootImage: guestRoot.image };
  } finally {
    release();
  }
}
