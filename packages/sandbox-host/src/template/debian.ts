import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandRunner, invalidArgument, SandboxError } from "@turnbox/core";
import { readAptMirror } from "./apt-mirror.ts";
import { prepareSlim, removeUnneeded } from "./debian-slim.ts";
import { packRoot } from "./pack-root.ts";

/** The packages that agents expect. */
export const DEBIAN_PACKAGES: readonly string[] = ["git", "python3", "curl", "ca-certificates", "ripgrep"];

const PACKAGE_NAME = /^[a-z0-9][a-z0-9+.-]+$/;
const BUILD_DEADLINE_MS = 40 * 60_000;

/** Names of packages, separated by commas. */
export function parsePackages(list: string): readonly string[] {
  const names = list.split(",").map((name) => name.trim());
  const wrong = names.find((name) => !PACKAGE_NAME.test(name));
  if (wrong !== undefined)
    throw invalidArgument("--packages", `${JSON.stringify(wrong)} is not the name of a Debian package`);
  return [...new Set(names)];
}

/**
 * Builds a Debian root filesystem with debootstrap, the smallest one with these packages, and packs it into a tar archive.
 * Release and mirror are those of this machine, because they are known to be reachable. Of the machine's own configuration only
 * the mirror's address gets into the tree.
 */
export async function buildDebian(
  { output, packages }: { readonly output: string; readonly packages: readonly string[] },
  deps: { readonly runner: CommandRunner; readonly signal: AbortSignal; readonly report: (line: string) => void },
): Promise<void> {
  const { codename, url } = await readAptMirror();
  const directory = await mkdtemp(join(tmpdir(), "turnbox-debian-"));
  const root = join(directory, "root");
  const run = async (step: string, command: string, args: readonly string[]): Promise<void> => {
    deps.report(`${step} ...`);
    const { exitCode, stdout, stderr } = await deps.runner.run(
      { command, args, deadlineMs: BUILD_DEADLINE_MS, env: { LC_ALL: "C" } },
      { signal: deps.signal },
    );
    if (exitCode === 0) return;
    const last = `${stdout}\n${stderr}`.trim().split("\n").slice(-5).join("\n");
    throw new SandboxError("TEMPLATE_INVALID", `${step} failed (exit code ${exitCode}):\n${last}`);
  };
  try {
    await prepareSlim(root);
    await run(`debootstrap of Debian ${codename} with ${packages.join(", ")}`, "debootstrap", [
      "--variant=minbase",
      `--include=${packages.join(",")}`,
      codename,
      root,
      url,
    ]);
    await removeUnneeded(root);
    await rm(join(root, "etc/resolv.conf"), { force: true });
    await writeFile(join(root, "etc/hostname"), "turnbox\n");
    deps.report("packing ...");
    await packRoot({ root, output }, deps);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
