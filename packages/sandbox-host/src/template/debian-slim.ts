import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Files that no program needs: manuals, translations, and documents except for licences. */
const LEFT_OUT = ["usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian"];
const DOCUMENTS = "usr/share/doc";
const LICENCE = "copyright";
/** To flush each file by itself is slow, and an incomplete tree is removed anyway. */
const DPKG_RULES = [
  "force-unsafe-io",
  ...LEFT_OUT.map((path) => `path-exclude=/${path}/*`),
  `path-exclude=/${DOCUMENTS}/*`,
  `path-include=/${DOCUMENTS}/*/${LICENCE}`,
  "",
];

/** Keeps a root filesystem small from before its first package on, and when further ones are installed inside. */
export async function prepareSlim(root: string): Promise<void> {
  const directory = join(root, "etc/dpkg/dpkg.cfg.d");
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "turnbox"), DPKG_RULES.join("\n"));
}

/** Removes what was installed before dpkg had its rules, and what only the installation needed. */
export async function removeUnneeded(root: string): Promise<void> {
  for (const path of LEFT_OUT) await empty(join(root, path), []);
  for (const entry of await entriesOf(join(root, DOCUMENTS))) {
    if (entry.isDirectory()) await empty(join(root, DOCUMENTS, entry.name), [LICENCE]);
  }
  for (const path of ["var/cache/apt/archives", "var/lib/apt/lists"]) {
    await rm(join(root, path), { recursive: true, force: true });
    await mkdir(join(root, path, "partial"), { recursive: true });
  }
  for (const path of ["var/cache/apt/pkgcache.bin", "var/cache/apt/srcpkgcache.bin", "var/log/bootstrap.log"]) {
    await rm(join(root, path), { force: true });
  }
}

async function empty(directory: string, kept: readonly string[]): Promise<void> {
  for (const { name } of await entriesOf(directory)) {
    if (!kept.includes(name)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

const entriesOf = async (directory: string) => await readdir(directory, { withFileTypes: true }).catch(() => []);
