import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CommandResult, type CommandRunner, SandboxError } from "@turnbox/core";

export const MINI = "mini";

/** The paths of Debian's static builds of the two programs. */
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

/**
 * The options of wget in a BusyBox that was built without timeouts: it takes the number after -T and stores it through a
 * null pointer, which ends it by a segmentation fault.
 */
const FATAL = "^cqSO:o:P:Y:U:T:+t:n::\0";
/**
 * The same options in the same order and length, with -T as a word that is ignored, as -t is. In exchange the value of -Y
 * has to follow it without a space.
 */
const HARMLESS = "^cqSO:o:P:Y::U:T:t:n::\0";
/** How the help of a wget that has timeouts names the option. */
const TIMEOUT_OPTION = /^\s*-T\s/m;

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

/** Corrects the fault that ends wget in the copy of busybox. */
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

/** Whether a BusyBox with this help of its wget may die of -T. */
export const lacksTimeouts = (help: string): boolean => !TIMEOUT_OPTION.test(help);

/**
 * Corrects a BusyBox without timeouts in place. BusyBox looks for a program in itself before it searches PATH, so neither
 * another program of that name nor a missing link keeps a shell from the faulty one (decision 0035).
 */
export function mendBusybox(program: Buffer): "mended" | "unchanged" {
  const at = program.indexOf(FATAL, 0, "latin1");
  if (at < 0 || program.includes(FATAL, at + 1, "latin1")) return "unchanged";
  program.write(HARMLESS, at, "latin1");
  return "mended";
}
