import { chmod, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CommandRunner, SandboxError } from "@turnbox/core";

export const MINI = "mini";

/** Where Debian's static builds of the two programs are. */
export interface MiniSources {
  readonly busybox: string;
  readonly bash: string;
}

const FILES: Readonly<Record<string, string>> = {
  "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  "etc/group": "root:x:0:\nnogroup:x:65534:\n",
  "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
  "etc/hostname": "turnbox\n",
};

/** Writes the smallest useful root filesystem: busybox with a link for each of its programs, and bash. */
export async function fillMini(
  root: string,
  deps: { readonly sources: MiniSources; readonly runner: CommandRunner; readonly signal: AbortSignal },
): Promise<void> {
  for (const directory of ["bin", "etc", "root", "home", "usr", "var", "var/tmp", "workspace"]) {
    await mkdir(join(root, directory), { mode: 0o755 });
  }
  await chmod(join(root, "root"), 0o700);
  await chmod(join(root, "var/tmp"), 0o1777);
  await symlink("../bin", join(root, "usr/bin"));
  await copyProgram(deps.sources.busybox, join(root, "bin/busybox"));
  await copyProgram(deps.sources.bash, join(root, "bin/bash"));
  for (const applet of await applets(deps)) {
    if (applet !== "busybox" && applet !== "bash") await symlink("busybox", join(root, "bin", applet));
  }
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(root, path), content, { mode: 0o644 });
}

async function copyProgram(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to);
  } catch (cause) {
    throw new SandboxError("COMMAND_MISSING", `template mini needs ${from}`, { cause, metadata: { command: from } });
  }
  await chmod(to, 0o755);
}

async function applets(deps: {
  readonly sources: MiniSources;
  readonly runner: CommandRunner;
  readonly signal: AbortSignal;
}) {
  const { stdout } = await deps.runner.run(
    { command: deps.sources.busybox, args: ["--list"], deadlineMs: 10_000 },
    { signal: deps.signal },
  );
  return stdout.split("\n").filter((name) => name !== "");
}
