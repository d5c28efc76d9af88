import { readFileSync, rmSync, writeFileSync } from "node:fs";

const MARK = "# written by the turnbox bootstrap while it installs packages";

const isOurs = (file) => {
  try {
    return readFileSync(file, "utf8").includes(MARK);
  } catch {
    return false;
  }
};

/** Removes a policy that a killed bootstrap has left behind. */
export function removeLeftover(file = "/usr/sbin/policy-rc.d") {
  if (isOurs(file)) rmSync(file);
}

/**
 * Does `work` while packages may not start services: the one of zfs-fuse fails where its daemon cannot run (and the
 * whole installation with it), and a host starts the daemon itself. A policy that the machine already has stays as it is.
 */
export async function withoutServiceStarts(work, file = "/usr/sbin/policy-rc.d") {
  removeLeftover(file);
  const remove = () => removeLeftover(file);
  process.on("exit", remove);
  try {
    writeFileSync(file, `#!/bin/sh\n${MARK}\nexit 101\n`, { mode: 0o755, flag: "wx" });
  } catch (cause) {
    if (cause.code !== "EEXIST") throw cause;
  }
  try {
    return await work();
  } finally {
    remove();
    process.off("exit", remove);
  }
}
