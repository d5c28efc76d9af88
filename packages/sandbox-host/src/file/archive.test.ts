import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Header, type HeaderData } from "tar";
import { FileFailure } from "./failure.ts";
import { packArchive } from "./op/pack-archive.ts";
import { unpackArchive, type UnpackOutput } from "./op/unpack-archive.ts";
import { createWalk } from "./walk.ts";

const LIMITS = { maxBytes: 1024 ** 3, maxEntries: 1000 };

let base: string;
let root: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "turnbox-tar-"));
  root = join(base, "root");
  mkdirSync(join(root, "workspace"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/canary"), "secret");
});

afterEach(() => {
  rmSync(base, { recursive: true });
});

function unpack(archive: Buffer, path = "to"): UnpackOutput {
  using walk = createWalk(root);
  function* pieces(): Generator<Buffer> {
    // Pieces that end anywhere.
    for (let start = 0; start < archive.length; start += 1000) yield archive.subarray(start, start + 1000);
  }
  return unpackArchive({ walk, send: () => undefined, body: pieces }, { path, ...LIMITS });
}

function pack(path: string, excludes: readonly string[] = []): Buffer {
  using walk = createWalk(root);
  const pieces: Buffer[] = [];
  packArchive({ walk, send: (bytes) => void pieces.push(Buffer.from(bytes)), body: () => [] }, { path, excludes });
  return Buffer.concat(pieces);
}

/** An archive as nobody's tar would write it. */
function craft(...entries: readonly (HeaderData & { readonly text?: string })[]): Buffer {
  const blocks = entries.flatMap(({ text = "", ...data }) => {
    const block = Buffer.alloc(512);
    new Header({ mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), size: text.length, ...data }).encode(block);
    return [block, Buffer.concat([Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)])];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

function refusalOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (thrown) {
    return thrown instanceof FileFailure ? `${thrown.reason} ${thrown.message}` : String(thrown);
  }
}

const outside = (): readonly string[] => readdirSync(join(base, "outside"));

describe("unpacking an archive", () => {
  it("makes files, directories, links and hard links as GNU tar packed them", () => {
    const from = join(base, "from");
    mkdirSync(join(from, "deep/er"), { recursive: true });
    writeFileSync(join(from, "deep/er/text"), "text");
    mkdirSync(join(from, "long-".repeat(12)));
    writeFileSync(join(from, "long-".repeat(12), "name".repeat(20)), "long");
    writeFileSync(join(from, "run"), "#!/bin/sh\n", { mode: 0o755 });
    chmodSync(join(from, "run"), 0o4755);
    symlinkSync("/etc/passwd", join(from, "link"));
    execFileSync("ln", [join(from, "deep/er/text"), join(from, "hard")]);
    for (const format of ["gnu", "pax", "ustar"]) {
      const archive = execFileSync("tar", [`--format=${format}`, "-cf", "-", "-C", from, "."]);
      expect(unpack(archive, `to/${format}`)).toEqual({ entries: 9, bytes: expect.any(Number) });
      const to = join(root, "workspace/to", format);
      expect(readFileSync(join(to, "deep/er/text"), "utf8")).toBe("text");
      expect(readFileSync(join(to, "long-".repeat(12), "name".repeat(20)), "utf8")).toBe("long");
      expect(readlinkSync(join(to, "link"))).toBe("/etc/passwd");
      expect(lstatSync(join(to, "hard")).ino).toBe(lstatSync(join(to, "deep/er/text")).ino);
      expect(lstatSync(join(to, "run")).mode & 0o7777).toBe(0o755);
    }
  });

  it.each([
    ["dots", craft({ path: "../x", type: "File", text: "x" }), "leads out"],
    ["dots in the middle", craft({ path: "a/../../x", type: "File", text: "x" }), "leads out"],
    ["an absolute path", craft({ path: "/etc/x", type: "File", text: "x" }), "absolute"],
    ["a device", craft({ path: "null", type: "CharacterDevice" }), "CharacterDevice"],
    ["a FIFO", craft({ path: "fifo", type: "FIFO" }), "FIFO"],
    ["a name twice", craft({ path: "x", type: "File", text: "1" }, { path: "./x", type: "File", text: "2" }), "twice"],
    ["a hard link by dots", craft({ path: "x", type: "Link", linkpath: "../../../outside/canary" }), "leads out"],
    ["a hard link to an absolute path", craft({ path: "x", type: "Link", linkpath: "/etc/passwd" }), "absolute"],
    ["a hard link to nothing", craft({ path: "x", type: "Link", linkpath: "missing" }), "hard link"],
    ["more bytes than any archive may have", craft({ path: "x", type: "File", size: 2 * 1024 ** 3 }), "more than"],
    ["no archive", Buffer.alloc(4096, "x"), "tar archive"],
    ["an archive by another compression", Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0]), "by gzip"],
    ["gzip that is none", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]), "tar archive"],
    ["gzip that breaks off", gzipSync(craft({ path: "x", type: "File", text: "y" })).subarray(0, 30), "tar archive"],
    [
      "a bomb, which unpacks to a thousand times its size",
      gzipSync(craft({ path: "x", type: "File", text: "0".repeat(50_000_000) })),
      "ratio",
    ],
    [
      "an archive that breaks off",
      craft({ path: "x", type: "File", text: "y".repeat(5000) }).subarray(0, 2000),
      "tar archive",
    ],
  ])("refuses %s (attack 14)", (_name, archive, why) => {
    expect(refusalOf(() => unpack(archive))).toContain(why);
    expect(outside()).toEqual(["canary"]);
    expect(unpack(craft({ path: "legal", type: "File", text: "legal" })).entries).toBe(1);
  });

  it("takes gzip, in pieces that end anywhere", () => {
    const text = Array.from({ length: 20_000 }, (_, n) => `line ${n}\n`).join("");
    const archive = gzipSync(craft({ path: "a/text", type: "File", text }, { path: "b", type: "File", text: "b" }));
    expect(unpack(archive)).toEqual({ entries: 2, bytes: text.length + 1 });
    expect(readFileSync(join(root, "workspace/to/a/text"), "utf8")).toBe(text);
    expect(readFileSync(join(root, "workspace/to/b"), "utf8")).toBe("b");
    expect(refusalOf(() => unpack(gzipSync(craft({ path: "../x", type: "File", text: "x" }))))).toContain("leads out");
  });

  it("writes through no link, whether the archive brought it or it was there (attack 14)", () => {
    const link = { path: "l", type: "SymbolicLink", linkpath: join(base, "outside") } as const;
    const through = { path: "l/x", type: "File", text: "x" } as const;
    expect(refusalOf(() => unpack(craft(link, through)))).toContain("through a link");
    expect(refusalOf(() => unpack(craft(through)))).toContain("through a link");
    expect(refusalOf(() => unpack(craft({ ...through, path: "l/deep/x" })))).toContain("through a link");
    unpack(craft({ path: "l", type: "File", text: "a file in its place" }));
    expect(readFileSync(join(root, "workspace/to/l"), "utf8")).toBe("a file in its place");
    expect(outside()).toEqual(["canary"]);
    expect(readFileSync(join(base, "outside/canary"), "utf8")).toBe("secret");
  });

  it("makes nothing for what is no archive, and says so of an archive that ends in the middle", () => {
    const failureOf = (archive: Buffer, path: string): unknown => {
      try {
        return unpack(archive, path);
      } catch (thrown) {
        return thrown;
      }
    };
    expect(failureOf(Buffer.from("text\n"), "none")).toMatchObject({ reason: "INVALID_ARGUMENT", admitted: undefined });
    expect(failureOf(craft({ path: "p", type: "FIFO" }), "none")).toMatchObject({ admitted: undefined });
    expect(readdirSync(join(root, "workspace"))).toEqual([]);
    const half = craft({ path: "a", text: "a" }, { path: "b", text: "b".repeat(2000) }).subarray(0, 2048);
    expect(failureOf(half, "part")).toMatchObject({ reason: "INVALID_ARGUMENT", admitted: "unknown" });
    expect(readdirSync(join(root, "workspace/part"))).toContain("a");
    expect(unpack(craft({ path: "./", type: "Directory" }), "empty")).toEqual({ entries: 1, bytes: 0 });
    expect(readdirSync(join(root, "workspace/empty"))).toEqual([]);
  });

  it("refuses an archive of more entries than it may have (attack 14)", () => {
    const many = Array.from(
      { length: LIMITS.maxEntries },
      (_, n) => ({ path: `d${n % 10}/`, type: "Directory" }) as const,
    );
    expect(unpack(craft(...many)).entries).toBe(LIMITS.maxEntries);
    expect(refusalOf(() => unpack(craft(...many, { path: "one-more", type: "File" })))).toContain("1000 entries");
  });
});

describe("packing a directory", () => {
  it("packs what GNU tar unpacks to the same, with links as links and nothing of what they lead to (attack 15)", () => {
    const from = join(root, "workspace/from");
    mkdirSync(join(from, "deep/empty"), { recursive: true });
    writeFileSync(join(from, "deep/text"), "x".repeat(1000));
    writeFileSync(join(from, "ü".repeat(120)), "long");
    symlinkSync(join(base, "outside/canary"), join(from, "leaf"));
    symlinkSync(join(base, "outside"), join(from, "directory"));
    execFileSync("mkfifo", [join(from, "fifo")]);
    const archive = pack("from", ["*.log", "deep/skip"]);
    expect(archive.includes("secret")).toBe(false);
    const to = join(base, "unpacked");
    mkdirSync(to);
    execFileSync("tar", ["-xf", "-", "-C", to], { input: archive });
    expect(readdirSync(to).sort()).toEqual(["deep", "directory", "leaf", "ü".repeat(120)]);
    expect(readFileSync(join(to, "deep/text"), "utf8")).toBe("x".repeat(1000));
    expect(readlinkSync(join(to, "leaf"))).toBe(join(base, "outside/canary"));
    expect(unpack(archive).entries).toBe(6);
  });

  it("leaves out what matches, packs a single file, and refuses a size that nobody could store (attack 9)", () => {
    const from = join(root, "workspace/from");
    mkdirSync(join(from, "node_modules/x"), { recursive: true });
    mkdirSync(join(from, "src"));
    for (const name of ["node_modules/x/y", "src/a.ts", "src/a.log"]) writeFileSync(join(from, name), name);
    const names = (archive: Buffer): readonly string[] =>
      execFileSync("tar", ["-tf", "-"], { input: archive, encoding: "utf8" }).trim().split("\n");
    expect(names(pack("from", ["node_modules", "*.log"]))).toEqual(["src/", "src/a.ts"]);
    expect(names(pack("from/src/a.ts"))).toEqual(["a.ts"]);
    truncateSync(join(from, "src/a.ts"), 8 * 1024 ** 4);
    expect(refusalOf(() => pack("from"))).toContain("INVALID_ARGUMENT");
  });
});
