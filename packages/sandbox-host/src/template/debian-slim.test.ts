import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { prepareSlim, removeUnneeded } from "./debian-slim.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "turnbox-slim-"));
});
afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

const put = async (...paths: readonly string[]): Promise<void> => {
  for (const path of paths) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), "x");
  }
};

describe("a slim Debian", () => {
  it("has no manuals, translations and package lists, but programs, licences and the directories themselves", async () => {
    await put("usr/share/man/man1/git.1.gz", "usr/share/locale/de/git.mo", "usr/bin/git", "usr/share/perl/a.pm");
    await put("usr/share/doc/git/copyright", "usr/share/doc/git/changelog.gz", "usr/share/doc/git/more/README");
    await put("var/lib/apt/lists/a", "var/cache/apt/archives/git.deb");
    await symlink("git", join(root, "usr/share/doc/git-man"));
    await removeUnneeded(root);
    expect(await readdir(join(root, "usr/share"))).toEqual(["doc", "locale", "man", "perl"]);
    for (const path of ["usr/share/man", "usr/share/locale"]) expect(await readdir(join(root, path))).toEqual([]);
    expect(await readdir(join(root, "usr/share/doc/git"))).toEqual(["copyright"]);
    expect(await readdir(join(root, "usr/share/doc"))).toEqual(["git", "git-man"]);
    for (const path of ["var/lib/apt/lists", "var/cache/apt/archives"])
      expect(await readdir(join(root, path))).toEqual(["partial"]);
    expect(existsSync(join(root, "usr/bin/git"))).toBe(true);
  });

  it("configures dpkg the same way for later packages", async () => {
    await prepareSlim(root);
    const rules = (await readFile(join(root, "etc/dpkg/dpkg.cfg.d/turnbox"), "utf8")).split("\n");
    expect(rules).toContain("path-exclude=/usr/share/man/*");
    expect(rules.indexOf("path-include=/usr/share/doc/*/copyright")).toBeGreaterThan(
      rules.indexOf("path-exclude=/usr/share/doc/*"),
    );
  });
});
