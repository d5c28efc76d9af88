import { execFileSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ArchiveFixture, craft, LIMITS, refusalOf } from "./archive-fixture.suite.ts";

let fixture: ArchiveFixture;

beforeEach(() => {
  fixture = new ArchiveFixture();
});

afterEach(() => {
  fixture[Symbol.dispose]();
});

describe("unpacking an archive", () => {
  it("makes files, directories, links and hard links as GNU tar packed them", () => {
    const from = join(fixture.base, "from");
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
      expect(fixture.unpack(archive, `to/${format}`)).toEqual({ entries: 9, bytes: expect.any(Number) });
      const to = join(fixture.root, "workspace/to", format);
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
    expect(refusalOf(() => fixture.unpack(archive))).toContain(why);
    expect(fixture.outside()).toEqual(["canary"]);
    expect(fixture.unpack(craft({ path: "legal", type: "File", text: "legal" })).entries).toBe(1);
  });

  it("takes gzip, in pieces that end anywhere", () => {
    const text = Array.from({ length: 20_000 }, (_, n) => `line ${n}\n`).join("");
    const archive = gzipSync(craft({ path: "a/text", type: "File", text }, { path: "b", type: "File", text: "b" }));
    expect(fixture.unpack(archive)).toEqual({ entries: 2, bytes: text.length + 1 });
    expect(readFileSync(join(fixture.root, "workspace/to/a/text"), "utf8")).toBe(text);
    expect(readFileSync(join(fixture.root, "workspace/to/b"), "utf8")).toBe("b");
    expect(refusalOf(() => fixture.unpack(gzipSync(craft({ path: "../x", type: "File", text: "x" }))))).toContain(
      "leads out",
    );
  });

  it("writes through no link, whether the archive brought it or it was there (attack 14)", () => {
    const link = { path: "l", type: "SymbolicLink", linkpath: join(fixture.base, "outside") } as const;
    const through = { path: "l/x", type: "File", text: "x" } as const;
    expect(refusalOf(() => fixture.unpack(craft(link, through)))).toContain("through a link");
    expect(refusalOf(() => fixture.unpack(craft(through)))).toContain("through a link");
    expect(refusalOf(() => fixture.unpack(craft({ ...through, path: "l/deep/x" })))).toContain("through a link");
    fixture.unpack(craft({ path: "l", type: "File", text: "a file instead of it" }));
    expect(readFileSync(join(fixture.root, "workspace/to/l"), "utf8")).toBe("a file instead of it");
    expect(fixture.outside()).toEqual(["canary"]);
    expect(readFileSync(join(fixture.base, "outside/canary"), "utf8")).toBe("secret");
  });

  it("makes nothing if the body is no archive, and reports an archive that ends in the middle", () => {
    const failureOf = (archive: Buffer, path: string): unknown => {
      try {
        return fixture.unpack(archive, path);
      } catch (thrown) {
        return thrown;
      }
    };
    expect(failureOf(Buffer.from("text\n"), "none")).toMatchObject({ reason: "INVALID_ARGUMENT", admitted: undefined });
    expect(failureOf(craft({ path: "p", type: "FIFO" }), "none")).toMatchObject({ admitted: undefined });
    expect(readdirSync(join(fixture.root, "workspace"))).toEqual([]);
    const half = craft({ path: "a", text: "a" }, { path: "b", text: "b".repeat(2000) }).subarray(0, 2048);
    expect(failureOf(half, "part")).toMatchObject({ reason: "INVALID_ARGUMENT", admitted: "unknown" });
    expect(readdirSync(join(fixture.root, "workspace/part"))).toContain("a");
    expect(fixture.unpack(craft({ path: "./", type: "Directory" }), "empty")).toEqual({ entries: 1, bytes: 0 });
    expect(readdirSync(join(fixture.root, "workspace/empty"))).toEqual([]);
  });

  it("refuses an archive of more entries than it may have (attack 14)", () => {
    const many = Array.from(
      { length: LIMITS.maxEntries },
      (_, n) => ({ path: `d${n % 10}/`, type: "Directory" }) as const,
    );
    expect(fixture.unpack(craft(...many)).entries).toBe(LIMITS.maxEntries);
    expect(refusalOf(() => fixture.unpack(craft(...many, { path: "one-more", type: "File" })))).toContain(
      "1000 entries",
    );
  });
});
