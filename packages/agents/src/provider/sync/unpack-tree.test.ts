import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Pax } from "tar";
import { createExcludes } from "./excludes.ts";
import type { Anchor } from "./held-directory.ts";
import { createSyncCounter, type SyncLimits } from "./sync-counter.ts";
import {
  collect,
  craft,
  createTreeFixture,
  pieces,
  type CraftedEntry,
  type TreeFixture,
} from "./tree-fixture.suite.ts";
import { unpackTree } from "./unpack-tree.ts";

let fixture: TreeFixture;

beforeEach(() => {
  fixture = createTreeFixture();
});

afterEach(() => {
  expect(readdirSync(fixture.outside)).toEqual(["canary"]);
  expect(readFileSync(join(fixture.outside, "canary"), "utf8")).toBe("secret");
  fixture[Symbol.dispose]();
});

const excludes = createExcludes("from_runtime");
const unpack = async (archive: AsyncIterable<Uint8Array>, limits: SyncLimits = {}, anchor?: Anchor) => {
  const counter = createSyncCounter(limits);
  await unpackTree(archive, { root: fixture.root, excludes, counter, ...(anchor === undefined ? {} : { anchor }) });
  return counter.result();
};
const unpackCrafted = (...entries: readonly CraftedEntry[]) => unpack(pieces(craft(...entries)));
const read = (path: string): string => readFileSync(join(fixture.root, path), "utf8");

describe("unpacking a runtime's files", () => {
  it("makes directories, files and links, replaces files whole, and counts what arrived", async () => {
    writeFileSync(join(fixture.root, "a.txt"), "old and longer");
    const result = await unpackCrafted(
      { path: "sub/", type: "Directory", mode: 0o755 },
      { path: "a.txt", text: "new", mode: 0o4755 },
      { path: "sub/deep/b.txt", text: "b", mtime: new Date("2026-01-02T03:04:05Z") },
      { path: "sub/link", type: "SymbolicLink", linkpath: "../a.txt" },
    );
    expect(result).toEqual({ files: 3, bytes: 4, errors: [] });
    expect(read("a.txt")).toBe("new");
    expect(lstatSync(join(fixture.root, "a.txt")).mode & 0o7777).toBe(0o755);
    expect(lstatSync(join(fixture.root, "sub/deep/b.txt")).mtime).toEqual(new Date("2026-01-02T03:04:05Z"));
    expect(readlinkSync(join(fixture.root, "sub/link"))).toBe("../a.txt");
    expect(readdirSync(fixture.root).sort()).toEqual(["a.txt", "sub"]);
  });

  it.each<[string, CraftedEntry, RegExp]>([
    ["a path that leads up", { path: "../outside/x", text: "x" }, /leads out/],
    ["a path that leads up from inside", { path: "sub/../../outside/x", text: "x" }, /leads out/],
    ["an absolute path", { path: "/etc/turnbox-attack", text: "x" }, /absolute/],
    ["a hard link", { path: "x", type: "Link", linkpath: "../outside/canary" }, /it is a Link/],
    ["a character device", { path: "x", type: "CharacterDevice" }, /CharacterDevice/],
    ["a block device", { path: "x", type: "BlockDevice" }, /BlockDevice/],
    ["a pipe", { path: "x", type: "FIFO" }, /FIFO/],
    ["a name with a newline", { path: "x\ny", text: "x" }, /characters/],
    ["a name with a control character", { path: "x\u001b[2J", text: "x" }, /characters/],
    ["a link to an absolute path", { path: "x", type: "SymbolicLink", linkpath: "/etc/passwd" }, /target is absolute/],
    ["a link out", { path: "x", type: "SymbolicLink", linkpath: "../outside" }, /outside/],
    ["a deep link out", { path: "a/b/x", type: "SymbolicLink", linkpath: "../../../outside" }, /outside/],
    ["a link that goes down and up", { path: "a/b/x", type: "SymbolicLink", linkpath: "s/../.." }, /goes up after/],
    ["a file in place of the root", { path: "./", type: "SymbolicLink", linkpath: "a" }, /directory itself/],
  ])("leaves out %s, names it, and goes on", async (_what, entry, message) => {
    const result = await unpackCrafted(entry, { path: "good", text: "good" });
    expect(result).toMatchObject({ files: 1, bytes: 4, errors: [expect.stringMatching(message)] });
    expect(read("good")).toBe("good");
    expect(readdirSync(fixture.root).filter((name) => name !== "good" && name !== "a")).toEqual([]);
  });

  it.each([
    ["../outside/x", /leads out/],
    ["/etc/turnbox-attack", /absolute/],
    [`${"d/".repeat(300)}x`, /too long/],
    ["n".repeat(300), /too long/],
  ])("is not deceived by the path %j of an extended header", async (path, message) => {
    const extended = new Pax({ path }).encode();
    const archive = Buffer.concat([extended, craft({ path: "harmless", text: "x" })]);
    expect(await unpack(pieces(archive))).toMatchObject({ files: 0, errors: [expect.stringMatching(message)] });
    expect(readdirSync(fixture.root)).toEqual([]);
  });

  it.each(["x\0/../../outside/y", "x\n/../../outside/y"])(
    "takes no more than a harmless part of the name %j",
    async (path) => {
      const extended = Buffer.concat([new Pax({ path }).encode(), craft({ path: "harmless", text: "x" })]);
      await unpack(pieces(extended));
      await unpackCrafted({ path, text: "x" });
      for (const name of readdirSync(fixture.root)) expect(["x", "harmless"]).toContain(name);
    },
  );

  it.each<Anchor>(["descriptor", "path"])(
    "never writes through a link, be it the archive's or not (by %s)",
    async (anchor) => {
      symlinkSync(fixture.outside, join(fixture.root, "theirs"));
      symlinkSync(join(fixture.outside, "canary"), join(fixture.root, "file-link"));
      const archive = craft(
        { path: "theirs/x", text: "x" },
        { path: "file-link", text: "mine" },
        { path: "d/", type: "Directory" },
        { path: "inner", type: "SymbolicLink", linkpath: "d" },
        { path: "inner/y", text: "y" },
        { path: "theirs/", type: "Directory" },
      );
      const result = await unpack(pieces(archive), {}, anchor);
      expect(result.errors).toHaveLength(3);
      for (const error of result.errors) expect(error).toMatch(/leads through a link/);
      expect(lstatSync(join(fixture.root, "file-link")).isFile()).toBe(true);
      expect(read("file-link")).toBe("mine");
      expect(readdirSync(join(fixture.root, "d"))).toEqual([]);
    },
  );

  it("holds on to a directory that somebody replaces by a link while a file in it is written (D16)", async () => {
    const archive = craft({ path: "d/big", text: "x".repeat(4000) });
    async function* swapping(): AsyncGenerator<Uint8Array> {
      yield archive.subarray(0, 1024);
      // The file is begun by now.
      renameSync(join(fixture.root, "d"), join(fixture.root, "moved"));
      symlinkSync(fixture.outside, join(fixture.root, "d"));
      yield archive.subarray(1024);
    }
    expect(await unpack(swapping())).toMatchObject({ files: 1, errors: [] });
    expect(read("moved/big")).toHaveLength(4000);
  });

  it("refuses to go on in a replaced directory where only the path can be held (D16)", async () => {
    const archive = craft({ path: "d/big", text: "x".repeat(4000) });
    async function* swapping(): AsyncGenerator<Uint8Array> {
      yield archive.subarray(0, 1024);
      renameSync(join(fixture.root, "d"), join(fixture.root, "moved"));
      symlinkSync(fixture.outside, join(fixture.root, "d"));
      yield archive.subarray(1024);
    }
    const result = await unpack(swapping(), {}, "path");
    expect(result).toMatchObject({ files: 0, errors: [expect.stringMatching(/was replaced/)] });
  });

  it("does not put a file in the place of a directory", async () => {
    mkdirSync(join(fixture.root, "d"));
    writeFileSync(join(fixture.root, "d/kept"), "kept");
    const { errors } = await unpackCrafted(
      { path: "d", text: "x" },
      { path: "d", type: "SymbolicLink", linkpath: "y" },
    );
    expect(errors).toEqual([
      expect.stringMatching(/a directory is there/),
      expect.stringMatching(/a directory is there/),
    ]);
    expect(readdirSync(fixture.root)).toEqual(["d"]);
  });

  it("ends beyond its limits before it writes what is too much", async () => {
    const huge = craft({ path: "huge", size: 2 ** 40 }).subarray(0, 512);
    await expect(unpack(pieces(huge))).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
    const many = craft(...Array.from({ length: 5 }, (_, at) => ({ path: `f${at}`, text: "x" })));
    await expect(unpack(pieces(many), { maxEntries: 4 })).rejects.toThrow(/more than 4 entries/);
    expect(readdirSync(fixture.root)).toEqual(["f0", "f1", "f2", "f3"]);
  });

  it("names at most a hundred refusals and counts the others", async () => {
    const bad = Array.from({ length: 130 }, (_, at) => ({ path: `../x${at}`, text: "x" }));
    const { errors } = await unpackCrafted(...bad);
    expect(errors).toHaveLength(101);
    expect(errors.at(-1)).toBe("30 more were left out");
  });

  it("refuses a damaged, cut or compressed archive, and leaves no half file", async () => {
    await expect(unpack(pieces(Buffer.from("no archive at all, but long enough".repeat(40))))).rejects.toThrow(
      /damaged/,
    );
    await expect(unpack(pieces(gzipSync(craft({ path: "x", text: "x" }))))).rejects.toThrow(/compressed/);
    await expect(unpack(pieces(gzipSync(craft({ path: "x", text: "x" })), 1))).rejects.toThrow(/compressed/);
    const cut = craft({ path: "x", text: "x".repeat(5000) }).subarray(0, 2000);
    await expect(unpack(pieces(cut))).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(readdirSync(fixture.root)).toEqual([]);
  });

  it("stops when its signal is aborted, and takes its draft away", async () => {
    const controller = new AbortController();
    const archive = craft({ path: "x", text: "x".repeat(5000) });
    async function* stopping(): AsyncGenerator<Uint8Array> {
      yield archive.subarray(0, 2000);
      controller.abort();
      yield archive.subarray(2000);
    }
    const work = unpackTree(stopping(), {
      root: fixture.root,
      excludes,
      counter: createSyncCounter(),
      signal: controller.signal,
    });
    await expect(work).rejects.toMatchObject({ name: "AbortError" });
    expect(readdirSync(fixture.root)).toEqual([]);
  });

  it("does not let a runtime bring git's hooks or configuration (D13)", async () => {
    const result = await unpackCrafted(
      { path: ".git/hooks/post-checkout", text: "#!/bin/sh", mode: 0o755 },
      { path: "sub/.GIT/config", text: "[core]" },
      { path: ".git/modules/m/config", text: "[core]" },
      { path: ".git/HEAD", text: "ref: refs/heads/main" },
    );
    expect(result.files).toBe(1);
    expect(await collect(pieces(Buffer.from(readdirSync(join(fixture.root, ".git")).join())))).toEqual(
      Buffer.from("HEAD"),
    );
  });
});
