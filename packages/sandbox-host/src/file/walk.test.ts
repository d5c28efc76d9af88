import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { FileFailure } from "./failure.ts";
import { createWalk, type Walk } from "./walk.ts";
import { makeParents, writeWhole } from "./write-whole.ts";

/** No walk may lead to `outside`; `root` is the session's. */
let base: string;
let root: string;
let walk: Walk;

beforeEach(() => {
  // Not in a temporary directory below /dev: there a way out would be refused for another reason.
  base = mkdtempSync("/tmp/turnbox-walk-");
  root = join(base, "root");
  mkdirSync(join(root, "workspace/dir"), { recursive: true });
  mkdirSync(join(root, "etc"));
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/canary"), "secret");
  writeFileSync(join(root, "workspace/dir/legal"), "legal");
  writeFileSync(join(root, "etc/hosts"), "inner hosts");
  walk = createWalk(root);
});

afterEach(() => {
  walk[Symbol.dispose]();
  rmSync(base, { recursive: true });
});

function read(path: string): string {
  using own = createWalk(root);
  return readFileSync(own.open(path).descriptor, "utf8");
}

function write(path: string, text: string): void {
  using target = walk.find(path);
  writeWhole(target, [Buffer.from(text)]);
}

function reasonOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (thrown) {
    return thrown instanceof FileFailure ? thrown.reason : String(thrown);
  }
}

const openDescriptors = (): number => readdirSync("/proc/self/fd").length;

describe("the walk through a session's files (D16)", () => {
  it("reads relative paths from /workspace and absolute ones from the session's root (D17)", () => {
    expect([read("dir/legal"), read("/workspace/dir/legal"), read("//workspace/./dir//legal")]).toEqual(
      Array.from({ length: 3 }, () => "legal"),
    );
  });

  it("resolves a leaf link inside the root, also if its target is outside (attack 1)", () => {
    symlinkSync(join(base, "outside/canary"), join(root, "workspace/absolute"));
    symlinkSync("../../outside/canary", join(root, "workspace/relative"));
    symlinkSync("/etc/hosts", join(root, "workspace/legal"));
    expect(reasonOf(() => read("absolute"))).toBe("FILE_NOT_FOUND");
    expect(reasonOf(() => read("relative"))).toBe("FILE_NOT_FOUND");
    expect(read("legal")).toBe("inner hosts");
  });

  it("resolves a link in the middle inside the root, for reading and writing (attacks 2 and 3)", () => {
    symlinkSync(join(base, "outside"), join(root, "workspace/out"));
    symlinkSync("/", join(root, "workspace/top"));
    symlinkSync("../../../..", join(root, "workspace/up"));
    expect(reasonOf(() => read("out/canary"))).toBe("FILE_NOT_FOUND");
    expect(
      reasonOf(() => {
        write("out/new", "x");
      }),
    ).toBe("FILE_NOT_FOUND");
    expect(
      reasonOf(() => {
        makeParents(walk, "out/deep/new");
      }),
    ).toBe("FILE_NOT_FOUND");
    expect(readdirSync(join(base, "outside"))).toEqual(["canary"]);
    expect([read("top/etc/hosts"), read("up/etc/hosts")]).toEqual(["inner hosts", "inner hosts"]);
    write("top/etc/new", "new");
    expect(readFileSync(join(root, "etc/new"), "utf8")).toBe("new");
  });

  it("never leads above the root by dots (attack 5)", () => {
    expect(read("../../../../../../etc/hosts")).toBe("inner hosts");
    expect(read("dir/../../etc/hosts")).toBe("inner hosts");
    expect(reasonOf(() => read(`../../../${base}/outside/canary`))).toBe("FILE_NOT_FOUND");
    for (const name of ["%2e%2e", "a\\b", "a\nb", "..."]) {
      write(name, name);
      expect(read(name)).toBe(name);
    }
  });

  it.each([
    ["an empty path", ""],
    ["a NUL", "a\0b"],
    ["4,097 bytes", "a/".repeat(2048) + "a"],
    ["a name of 256 bytes", "a".repeat(256)],
    ["half of a character", "a\ud800"],
  ])("refuses %s as an argument, naming the field (attack 5)", (_name, path) => {
    expect(() => walk.find(path, { field: "source" })).toThrow(/^source: /);
    expect(reasonOf(() => walk.find(path))).toBe("INVALID_ARGUMENT");
  });

  it("refuses /proc, /sys and /dev, also through links (attack 6)", () => {
    mkdirSync(join(root, "proc"));
    writeFileSync(join(root, "proc/x"), "x");
    symlinkSync("/proc", join(root, "workspace/p"));
    symlinkSync("proc", join(root, "q"));
    for (const path of [
      "/proc/self/root",
      "/proc/self/fd/0",
      "/proc/1/environ",
      "/proc",
      "../proc/x",
      "p/x",
      "/q/x",
      "/sys/x",
      "/dev/null",
    ])
      expect([path, reasonOf(() => read(path))]).toEqual([path, "PATH_REFUSED"]);
    mkdirSync(join(root, "workspace/proc"));
    writeFileSync(join(root, "workspace/proc/x"), "a file like others");
    expect(read("proc/x")).toBe("a file like others");
  });

  it("follows 40 links and no more", () => {
    symlinkSync("dir/legal", join(root, "workspace/l1"));
    for (let n = 2; n <= 41; n += 1) symlinkSync(`l${n - 1}`, join(root, `workspace/l${n}`));
    symlinkSync("loop", join(root, "workspace/loop"));
    expect(read("l40")).toBe("legal");
    expect(reasonOf(() => read("l41"))).toBe("PATH_REFUSED");
    expect(reasonOf(() => read("loop"))).toBe("PATH_REFUSED");
  });

  it("neither blocks on a FIFO nor opens what is no regular file (attacks 7 and 8)", async () => {
    execFileSync("mkfifo", [join(root, "workspace/fifo")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(root, "workspace/socket"), resolve));
    const startedMs = performance.now();
    for (let n = 0; n < 64; n += 1) {
      expect(reasonOf(() => read("fifo"))).toBe("PATH_REFUSED");
      expect(
        reasonOf(() => {
          write("fifo", "x");
        }),
      ).toBe("PATH_REFUSED");
    }
    expect(performance.now() - startedMs).toBeLessThan(1000);
    for (const path of ["socket", "dir", "/"])
      expect([path, reasonOf(() => read(path))]).toEqual([path, "PATH_REFUSED"]);
    await new Promise((resolve) => server.close(resolve));
  });

  it("resolves a dangling link to its target", () => {
    symlinkSync("dir/made-by-link", join(root, "workspace/dangling"));
    write("dangling", "through");
    expect(readFileSync(join(root, "workspace/dir/made-by-link"), "utf8")).toBe("through");
  });

  it("closes everything that it opened, also after failures", () => {
    symlinkSync("loop", join(root, "workspace/loop"));
    walk.directory("dir")[Symbol.dispose]();
    const before = openDescriptors();
    for (let n = 0; n < 50; n += 1) {
      read("dir/../dir/legal");
      for (const path of ["loop", "dir/legal/x", "missing/x", "/proc/x", "dir", ""]) reasonOf(() => read(path));
      walk.directory("dir")[Symbol.dispose]();
    }
    expect(openDescriptors()).toBe(before);
  });

  it("refuses a root that is on another filesystem than expected", () => {
    using same = createWalk(root, { device: walk.device });
    using other = createWalk(root, { device: walk.device + 1 });
    const before = openDescriptors();
    expect(() => other.device).toThrow(/not there/);
    expect(() => {
      other.assertThere();
    }).toThrow(/not there/);
    expect(() => other.find("dir/legal")).toThrow(/not there/);
    expect(() => other.open("dir/legal")).toThrow(/not there/);
    expect(openDescriptors()).toBe(before);
    expect(readFileSync(same.open("dir/legal").descriptor, "utf8")).toBe("legal");
  });

  it("reports that the root is not there, not the file, if a head was unmounted", () => {
    using gone = createWalk(join(base, "unmounted"));
    expect(reasonOf(() => gone.open("dir/legal"))).toBe("STORAGE_UNAVAILABLE");
    using empty = createWalk(join(base, "outside"), { device: walk.device + 1 });
    expect(reasonOf(() => empty.open("canary"))).toBe("STORAGE_UNAVAILABLE");
  });

  it("opens files in a root and with names that are not ASCII", () => {
    const elsewhere = join(base, "wurzel-ü");
    mkdirSync(join(elsewhere, "workspace/größe"), { recursive: true });
    writeFileSync(join(elsewhere, "workspace/größe/日本"), "there");
    using inner = createWalk(elsewhere);
    expect(readFileSync(inner.open("größe/日本").descriptor, "utf8")).toBe("there");
  });
});

describe("writing a file whole", () => {
  it("keeps the permissions of an existing file, but no set-user bits (attack 11)", () => {
    const path = join(root, "workspace/program");
    writeFileSync(path, "old", { mode: 0o755 });
    execFileSync("chmod", ["4750", path]);
    write("program", "new");
    expect(execFileSync("stat", ["-c", "%a %s", path], { encoding: "utf8" }).trim()).toBe("750 3");
    expect(readdirSync(join(root, "workspace")).sort()).toEqual(["dir", "program"]);
  });

  it("leaves the old content and nothing else if the new one breaks off", () => {
    function* breaking(): Generator<Buffer> {
      yield Buffer.from("half");
      throw new FileFailure("CANCELLED", "gone");
    }
    using target = walk.find("dir/legal");
    expect(() => writeWhole(target, breaking())).toThrow("gone");
    expect(readFileSync(join(root, "workspace/dir/legal"), "utf8")).toBe("legal");
    expect(readdirSync(join(root, "workspace/dir"))).toEqual(["legal"]);
  });
});
