import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { REPO, run } from "./process.ts";
import { environment, type TestServer } from "./server.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");
/** By a slow mirror on a busy machine. */
const BUILD_MS = 480_000;
/** Enough for git, and for Python with its whole library; a template with all that agents expect takes much longer. */
const PACKAGES = ["git", "python3"];
/** What the content depends on besides the packages. */
const BUILDER = ["debian.ts", "debian-slim.ts", "pack-root.ts"].map((name) =>
  join(REPO, "packages/sandbox-host/src/template", name),
);

/**
 * Gives a server the template `debian`, built by the command line as a user would. The archive is kept outside of the
 * repository, under the versions of its packages, so that only the first run on a machine takes its time.
 */
export async function installDebian(server: TestServer): Promise<void> {
  const directory = process.env["TURNBOX_TEMPLATE_CACHE"] ?? join(homedir(), ".cache/turnbox-templates");
  const name = `debian-${await versionKey()}.tar`;
  const archive = join(directory, name);
  const env = { ...environment(server.home), TURNBOX_PORT: new URL(server.url).port };
  const template = async (...args: readonly string[]): Promise<void> => {
    const made = await run(process.execPath, [CLI, "template", ...args], { env, timeoutMs: BUILD_MS });
    if (made.exitCode !== 0) throw new Error(`turnbox template ${args.join(" ")}: ${made.stdout}${made.stderr}`);
  };
  if (existsSync(archive)) {
    await template("import", "debian", archive);
    return;
  }
  await mkdir(directory, { recursive: true });
  const draft = `${archive}.${process.pid}`;
  try {
    await template("build", "debian", "--packages", PACKAGES.join(","), "--output", draft);
    await rename(draft, archive);
  } finally {
    await rm(draft, { force: true });
  }
  const older = (await readdir(directory)).filter((other) => /^debian-[0-9a-f]+\.tar$/.test(other) && other !== name);
  for (const other of older) await rm(join(directory, other), { force: true });
}

/** Changes when apt offers another version, and when the way changes in which the archive is made. */
async function versionKey(): Promise<string> {
  const offered = await run("apt-cache", ["policy", "base-files", ...PACKAGES]);
  const candidates = offered.stdout.match(/^ {2}Candidate: .*$/gm) ?? [];
  const hash = createHash("sha256").update(candidates.join("\n")).update(PACKAGES.join());
  for (const path of BUILDER) hash.update(readFileSync(path));
  return hash.digest("hex").slice(0, 16);
}
