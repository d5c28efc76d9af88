import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CommandResult, type CommandRunner, SandboxError } from "@turnbox/core";
import { lacksTimeouts, mendBusybox } from "./mend-busybox.ts";

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

interface MiniDeps {
  readonly sources: MiniSources;
  readonly runner: CommandRunner;
  readonly signal: AbortSignal;
}

/** Writes the smallest useful root filesystem: busybox with a link for each of its programs, and bash. */
export async function fillMini(root: string, deps: MiniDeps): Promise<void> {
  for (const directory of ["bin", "etc", "root", "home", "usr", "var", "var/tmp", "workspace"]) {
    await mkdir(join(root, directory), { mode: 0o755 });
  }
  await chmod(join(root, "root"), 0o700);
  await chmod(join(root, "var/tmp"), 0o1777);
  await symlink("../bin", join(root, "usr/bin"));
  await copyProgram(deps.sources.busybox, join(root, "bin/busybox"));
  await mend(join(root, "bin/busybox"), deps);
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

/** Corrects what the copy of busybox would die of. */
async function mend(copy: string, deps: MiniDeps): Promise<void> {
  const { stdout, stderr } = await ask(["wget", "--help"], deps);
  if (!lacksTimeouts(stdout + stderr)) return;
  const program = await readFile(copy);
  if (mendBusybox(program) === "mended") await writeFile(copy, program);
}

async function applets(deps: MiniDeps): Promise<readonly string[]> {
  return (await ask(["--list"], deps)).stdout.split("\n").filter((name) => name !== "");
}

async function ask(args: readonly string[], { sources, runner, signal }: MiniDeps): Promise<CommandResult> {
  return await runner.run({ command: sources.busybox, args, deadlineMs: 10_000 }, { signal });
}
