import { requireCommand } from "../bootstrap/command.mjs";

const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const STEP_TIMEOUT_MS = 60 * 60_000;

const environment = (env) => ({
  // What decides whether a mirror can be reached.
  ...Object.fromEntries(Object.entries(env).filter(([name]) => /^(https?|no|ftp)_proxy$/i.test(name))),
  PATH: SYSTEM_PATH,
  HOME: "/root",
  LC_ALL: "C.UTF-8",
  DEBIAN_FRONTEND: "noninteractive",
});

/** Others work on this machine too: everything that builds gives way. */
export const runNicely = (argv) =>
  requireCommand(["nice", "-n", "10", ...argv], {
    cwd: "/",
    env: environment(process.env),
    timeoutMs: STEP_TIMEOUT_MS,
  });

const ENTER = [
  'mount -t proc proc "$1/proc"',
  'mount -t sysfs -o ro sysfs "$1/sys"',
  'exec chroot "$1" /bin/sh -ec "$2"',
].join("\n");

/** Runs a script in a root folder. Its mounts and its processes are in namespaces of their own, and go with it. */
export const runInside = (folder, script) =>
  runNicely([
    ...["unshare", "--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-ec", ENTER, "sh", folder],
    script,
  ]);

/** A script that installs packages, given as the suite to prefer and names. */
export const installScript = (names, { suite } = {}) =>
  ["apt-get", "install", "-y", "--no-install-recommends", ...(suite === undefined ? [] : ["-t", suite]), ...names].join(
    " ",
  );
