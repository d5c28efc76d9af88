import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { judgeBreaking } from "../../scripts/release/breaking.mjs";
import * as changelog from "../../scripts/release/changelog.mjs";
import { checksumsOf } from "../../scripts/release/checksums.mjs";
import * as inManifests from "../../scripts/release/manifests.mjs";
import * as versions from "../../scripts/release/version.mjs";

// Scripts are JavaScript without types.
const { notesOf, withRelease } = changelog;
const { versionToRelease, compareVersions } = versions as {
  versionToRelease: (known: object) => string;
  compareVersions: (one: string, other: string) => number;
};
const { listManifests, oneVersion, withVersion } = inManifests as {
  listManifests: (folder: string) => readonly { readonly file: string; readonly text: string }[];
  oneVersion: (manifests: readonly { readonly file: string; readonly text: string }[]) => string;
  withVersion: (text: string, version: string) => string;
};

const root = path.resolve(import.meta.dirname, "../..");

describe("the version to release", () => {
  it.each([
    [{ current: "0.1.0" }, "0.1.0"],
    [{ current: "0.2.0", last: "0.1.4" }, "0.2.0"],
    [{ current: "0.1.4", last: "0.1.4" }, "0.1.5"],
    [{ current: "0.1.4", last: "0.1.4", wanted: "minor" }, "0.2.0"],
    [{ current: "0.9.9", last: "0.9.9", wanted: "major" }, "1.0.0"],
    [{ current: "0.1.9", last: "0.1.9", wanted: "0.1.10" }, "0.1.10"],
  ])("of %j is %s", (known, version) => {
    expect(versionToRelease(known)).toBe(version);
  });

  it.each([
    [{ current: "0.1.0", last: "0.1.0", wanted: "0.1.0" }, "not later than 0.1.0"],
    [{ current: "0.10.0", last: "0.10.0", wanted: "0.9.0" }, "not later than 0.10.0"],
    [{ current: "0.1.0", wanted: "next" }, "not a version"],
    [{ current: "0.1.0", wanted: "0.01.0" }, "not a version"],
  ])("of %j is refused: %s", (known, why) => {
    expect(() => versionToRelease(known)).toThrow(why);
  });

  it("is compared by its numbers, not by its text", () => {
    expect(["0.10.0", "0.9.0", "1.0.0", "0.9.10"].sort(compareVersions)).toEqual([
      "0.9.0",
      "0.9.10",
      "0.10.0",
      "1.0.0",
    ]);
  });
});

describe("the manifests", () => {
  const manifests = listManifests(root);

  it("of the workspace and of every package have one version", () => {
    expect(manifests.map(({ file }) => file)).toEqual(
      expect.arrayContaining(["package.json", "packages/cli/package.json"]),
    );
    expect(oneVersion(manifests)).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it("are refused by name if they disagree", () => {
    const other = { file: "packages/x/package.json", text: '{ "version": "9.9.9" }' };
    expect(() => oneVersion([...manifests, other])).toThrow("packages/x/package.json has 9.9.9");
  });

  it("get a version without any other change", () => {
    const text = manifests[0]?.text ?? "";
    const changed = withVersion(text, "7.8.9");
    expect(JSON.parse(changed)).toEqual({ ...(JSON.parse(text) as object), version: "7.8.9" });
    expect(changed.replace("7.8.9", oneVersion(manifests))).toBe(text);
  });
});

describe("CHANGELOG.md", () => {
  const text = readFileSync(path.join(root, "CHANGELOG.md"), "utf8");

  it("has notes for the next release", () => {
    expect(notesOf(text)).toContain("### Added");
  });

  it("gives what was not released the heading of its version", () => {
    const released = withRelease(text, { version: "7.8.9", date: "2030-01-02" });
    expect(released).toContain(`## [Unreleased]\n\n## [7.8.9] - 2030-01-02\n\n`);
    expect(() => notesOf(released)).toThrow("says nothing");
    expect(() => withRelease(released, { version: "7.8.9", date: "2030-01-02" })).toThrow("has 7.8.9 already");
  });

  it("is refused without the heading, and without an entry below a group", () => {
    expect(() => notesOf("# Changelog\n")).toThrow("no heading");
    expect(() => notesOf("## [Unreleased]\n\n## [0.1.0]\n\n### Added\n\n- Old.\n")).toThrow("says nothing");
  });
});

describe("a break of the protocol", () => {
  const findings = "proto/x.proto:1:1:Previously present field was deleted.\n";

  it("is not looked for without a release to compare with", () => {
    expect(judgeBreaking({ version: "0.1.0" })).toEqual({
      fails: false,
      text: "protocol: no tag of an earlier release to compare with",
    });
  });

  it("is a warning before 0.2.0 and a failure from 0.2.0 on", () => {
    const early = judgeBreaking({ version: "0.1.9", last: "0.1.8", findings });
    expect(early.fails).toBe(false);
    expect(early.text).toContain("WARNING");
    expect(early.text).toContain(findings);
    for (const version of ["0.2.0", "0.10.0", "1.0.0"])
      expect(judgeBreaking({ version, last: "0.1.8", findings })).toMatchObject({ fails: true });
  });

  it("that is none says so", () => {
    expect(judgeBreaking({ version: "0.2.0", last: "0.1.0" })).toEqual({
      fails: false,
      text: "protocol: nothing is broken since v0.1.0",
    });
  });
});

describe("the checksums of a release", () => {
  it("are what sha256sum reads", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "turnbox-checksums-"));
    try {
      const files = ["a.tgz", "b.tgz"].map((name) => path.join(folder, name));
      for (const file of files) writeFileSync(file, path.basename(file));
      writeFileSync(path.join(folder, "SHA256SUMS"), checksumsOf(files));
      const { status, stdout } = spawnSync("sha256sum", ["-c", "SHA256SUMS"], { cwd: folder, encoding: "utf8" });
      expect([status, stdout]).toEqual([0, "a.tgz: OK\nb.tgz: OK\n"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
