import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ArchiveFixture, refusalOf } from "./archive-fixture.suite.ts";

let fixture: ArchiveFixture;

beforeEach(() => {
  fixture = new ArchiveFixture();
});

afterEach(() => {
  fixture[Symbol.dispose]();
});

describe("packing a directory", () => {
  it("packs what GNU tar unpacks to the same, with links as links and none of their targets (attack 15)", () => {
    const from = join(fixture.root, "workspace/from");
    mkdirSync(join(from, "deep/empty"), { recursive: true });
    writeFileSync(join(from, "deep/text"), "x".repeat(1000));
    writeFileSync(join(from, "ü".repeat(120)), "long");
    symlinkSync(join(fixture.base, "outside/canary"), join(from, "leaf"));
    symlinkSync(join(fixture.base, "outside"), join(from, "directory"));
    execFileSync("mkfifo", [join(from, "fifo")]);
    const archive = fixture.pack("from", ["*.log", "deep/skip"]);
    expect(archive.includes("secret")).toBe(false);
    const to = join(fixture.base, "unpacked");
    mkdirSync(to);
    execFileSync("tar", ["-xf", "-", "-C", to], { input: archive });
    expect(readdirSync(to).sort()).toEqual(["deep", "directory", "leaf", "ü".repeat(120)]);
    expect(readFileSync(join(to, "deep/text"), "utf8")).toBe("x".repeat(1000));
    expect(readlinkSync(join(to, "leaf"))).toBe(join(fixture.base, "outside/canary"));
    expect(fixture.unpack(archive).entries).toBe(6);
  });

  it("leaves out what matches, packs a single file, and refuses a size that no disk can store (attack 9)", () => {
    const from = join(fixture.root, "workspace/from");
    mkdirSync(join(from, "node_modules/x"), { recursive: true });
    mkdirSync(join(from, "src"));
    for (const name of ["node_modules/x/y", "src/a.ts", "src/a.log"]) writeFileSync(join(from, name), name);
    const names = (archive: Buffer): readonly string[] =>
      execFileSync("tar", ["-tf", "-"], { input: archive, encoding: "utf8" }).trim().split("\n");
    expect(names(fixture.pack("from", ["node_modules", "*.log"]))).toEqual(["src/", "src/a.ts"]);
    expect(names(fixture.pack("from/src/a.ts"))).toEqual(["a.ts"]);
    truncateSync(join(from, "src/a.ts"), 8 * 1024 ** 4);
    expect(refusalOf(() => fixture.pack("from"))).toContain("INVALID_ARGUMENT");
  });
});
