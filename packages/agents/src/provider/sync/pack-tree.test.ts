import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createExcludes } from "./excludes.ts";
import { packTree } from "./pack-tree.ts";
import { createSyncCounter } from "./sync-counter.ts";
import { collect, createTreeFixture, type TreeFixture } from "./tree-fixture.suite.ts";
import { unpackTree } from "./unpack-tree.ts";

let from: TreeFixture;
let to: TreeFixture;

beforeEach(() => {
  from = createTreeFixture();
  to = createTreeFixture();
});

afterEach(() => {
  from[Symbol.dispose]();
  to[Symbol.dispose]();
});

const pack = (patterns: readonly string[] = [], counter = createSyncCounter()) => ({
  counter,
  archive: packTree({ root: from.root, excludes: createExcludes("to_runtime", patterns), counter }),
});
const unpackTo = async (archive: AsyncIterable<Uint8Array>, patterns?: readonly string[]) => {
  const counter = createSyncCounter();
  await unpackTree(archive, { root: to.root, excludes: createExcludes("to_runtime", patterns), counter });
  return counter.result();
};
const copy = async (patterns?: readonly string[]) => {
  const { archive, counter } = pack(patterns);
  return { received: await unpackTo(archive, patterns), sent: counter.result() };
};

describe("packing a workspace", () => {
  it("comes out as it went in, long names and links included", async () => {
    const long = `${"directory-with-a-long-name-".repeat(6)}/${"n".repeat(200)}`;
    mkdirSync(join(from.root, long, ".."), { recursive: true });
    writeFileSync(join(from.root, long), "long");
    writeFileSync(join(from.root, "run.sh"), "#!/bin/sh\n");
    chmodSync(join(from.root, "run.sh"), 0o755);
    symlinkSync("run.sh", join(from.root, "link"));
    writeFileSync(join(from.root, "größe 大.txt"), Buffer.alloc(300_000, 7));
    const { sent, received } = await copy();
    expect(received).toEqual(sent);
    expect(sent).toEqual({ files: 4, bytes: 300_014, errors: [] });
    expect(readFileSync(join(to.root, long), "utf8")).toBe("long");
    expect(readFileSync(join(to.root, "größe 大.txt"))).toEqual(Buffer.alloc(300_000, 7));
    expect(readlinkSync(join(to.root, "link"))).toBe("run.sh");
  });

  it("is an archive that tar reads", async () => {
    writeFileSync(join(from.root, "a"), "a");
    const listing = execFileSync("tar", ["-tf", "-"], { input: await collect(pack().archive), timeout: 10_000 });
    expect(String(listing).trim().split("\n")).toEqual(["./", "a"]);
  });

  it("leaves out what machines make for themselves, and what the patterns say", async () => {
    for (const path of ["node_modules/x", "src/dist/y", "src/keep", "logs/a.log", "logs/b.txt", "src/deep/tmp/z"]) {
      mkdirSync(join(from.root, path, ".."), { recursive: true });
      writeFileSync(join(from.root, path), path);
    }
    const { sent } = await copy(["*.log", "/src/**/tmp/"]);
    expect(sent.files).toBe(2);
    expect(readdirSync(to.root, { recursive: true }).sort()).toEqual([
      "logs",
      "logs/b.txt",
      "src",
      "src/deep",
      "src/keep",
    ]);
  });

  it("never follows a link out of the workspace, and names pipes that it leaves out", async () => {
    symlinkSync(from.outside, join(from.root, "out"));
    execFileSync("mkfifo", [join(from.root, "pipe")]);
    const { sent, received } = await copy();
    expect(sent).toMatchObject({ files: 1, errors: [expect.stringMatching(/"pipe" is not taken over/)] });
    expect(received.errors).toEqual([expect.stringMatching(/target is absolute/)]);
    expect(readdirSync(to.root)).toEqual([]);
  });

  it("keeps to the size of its header when a file shrinks meanwhile", async () => {
    writeFileSync(join(from.root, "a"), Buffer.alloc(600_000, 1));
    async function* shrinking(): AsyncGenerator<Uint8Array> {
      for await (const piece of pack().archive) {
        truncateSync(join(from.root, "a"), 0);
        yield piece;
      }
    }
    const received = await unpackTo(shrinking());
    expect(received).toEqual({ files: 1, bytes: 600_000, errors: [] });
  });

  it("takes an empty workspace, and an archive that has nothing in it", async () => {
    expect((await copy()).received).toEqual({ files: 0, bytes: 0, errors: [] });
    async function* nothing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(1024);
    }
    expect(await unpackTo(nothing())).toEqual({ files: 0, bytes: 0, errors: [] });
    expect(readdirSync(to.root)).toEqual([]);
  });

  it("ends beyond its limits", async () => {
    writeFileSync(join(from.root, "a"), "four");
    await expect(collect(pack([], createSyncCounter({ maxBytes: 3 })).archive)).rejects.toMatchObject({
      reason: "QUOTA_EXCEEDED",
    });
  });
});

describe("exclude patterns", () => {
  it.each([
    ["*.log", "a/b.log", true],
    ["*.log", "a/b.logs", false],
    ["src/*", "src/a/b", true],
    ["src/?.ts", "src/a.ts", true],
    ["src/?.ts", "src/ab.ts", false],
    ["**/x", "x", true],
    ["a/**", "a/b/c", true],
    ["a/**", "b/a/c", false],
    ["(x", "(x", true],
    ["/top", "sub/top", false],
  ])("%s for %s: %s", (pattern, path, isCovered) => {
    expect(createExcludes("to_runtime", [pattern]).covers(path)).toBe(isCovered);
  });

  it("are refused where they are empty or too many", () => {
    expect(() => createExcludes("to_runtime", [""])).toThrow(/excludePatterns/);
    expect(() => createExcludes("to_runtime", Array<string>(257).fill("x"))).toThrow(/at most 256/);
  });
});
