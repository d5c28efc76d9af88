import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandRunner, SandboxError } from "@turnbox/core";
import { packRoot } from "./pack-root.ts";

/** What an agent expects to find. */
const PACKAGES = ["git", "python3", "curl", "ca-certificates", "ripgrep"] as const;
const BUILD_DEADLINE_MS = 40 * 60_000;

/**
 * Builds a Debian root filesystem with debootstrap and packs it into a tar archive. Release and mirror are those of this
 * machine, because they are known to be reachable. What the machine itself put into the tree (its address of the mirror
 * aside) is not part of it.
 */
export async function buildDebian(
  output: string,
  deps: { readonly runner: CommandRunner; readonly signal: AbortSignal; readonly report: (line: string) => void },
): Promise<void> {
  const { codename, mirror } = await readSources();
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
    await run(`debootstrap of Debian ${codename} with ${PACKAGES.join(", ")}`, "debootstrap", [
      "--variant=minbase",
      `--include=${PACKAGES.join(",")}`,
      codename,
      root,
      mirror,
    ]);
    for (const path of ["var/cache/apt/archives", "var/lib/apt/lists"]) {
      await rm(join(root, path), { recursive: true, force: true });
      await mkdir(join(root, path, "partial"), { recursive: true });
    }
    await rm(join(root, "etc/resolv.conf"), { force: true });
    await writeFile(join(root, "etc/hostname"), "turnbox\n");
    deps.report("packing ...");
    await packRoot({ root, output }, deps);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The release of this machine and where its packages come from. */
async function readSources(): Promise<{ readonly codename: string; readonly mirror: string }> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const codename = /^VERSION_CODENAME=(.+)$/m.exec(release)?.[1]?.replaceAll('"', "");
  const lists = await Promise.all(
    ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"].map((path) =>
      readFile(path, "utf8").catch(() => ""),
    ),
  );
  const mirror = codename === undefined ? null : findMirror(lists.join("\n\n"), codename);
  if (codename === undefined || mirror === null) {
    throw new SandboxError(
      "COMMAND_MISSING",
      "template debian can be built on Debian only: no release or mirror was found in the apt sources",
    );
  }
  return { codename, mirror };
}

/** The mirror of the release itself in apt sources of either format. Pure. */
export function findMirror(sources: string, codename: string): string | null {
  const oneLine = new RegExp(`^deb\\s+(?:\\[[^\\]]*\\]\\s+)?(\\S+)\\s+${codename}\\s`, "m").exec(sources)?.[1];
  if (oneLine !== undefined) return oneLine;
  for (const stanza of sources.split(/\n\s*\n/)) {
    const field = (name: string): readonly string[] =>
      new RegExp(`^${name}:\\s*(.+)$`, "mi").exec(stanza)?.[1]?.trim().split(/\s+/) ?? [];
    if (field("Types").includes("deb") && field("Suites").includes(codename)) return field("URIs")[0] ?? null;
  }
  return null;
}
