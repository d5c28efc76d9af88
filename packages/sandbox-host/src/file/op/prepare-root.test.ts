import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createWalk } from "../walk.ts";
import { prepareRoot, type PrepareRootInput } from "./prepare-root.ts";

const INPUT: PrepareRootInput = {
  directories: [
    { path: "run/turnbox", mode: 0o750 },
    { path: "tmp", mode: 0o1777 },
  ],
  files: [{ path: "etc/resolv.conf", mode: 0o644 }],
};

let base: string;
let root: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "turnbox-prepare-"));
  root = join(base, "root");
  mkdirSync(root);
  mkdirSync(join(base, "outside"));
});
afterEach(() => {
  rmSync(base, { recursive: true });
});

const prepare = (): void => {
  using walk = createWalk(root);
  prepareRoot({ walk, body: () => [], send: () => undefined }, INPUT);
};
const modeOf = (path: string): number => lstatSync(join(root, path)).mode & 0o7777;

describe("the preparation of a root", () => {
  it("makes what is missing, with its mode", () => {
    prepare();
    expect(["run", "run/turnbox", "tmp", "etc/resolv.conf"].map(modeOf)).toEqual([0o755, 0o750, 0o1777, 0o644]);
  });

  it("leaves what is there as it is", () => {
    mkdirSync(join(root, "tmp"), { mode: 0o700 });
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc/resolv.conf"), "nameserver 192.0.2.1\n", { mode: 0o600 });
    prepare();
    expect(["tmp", "etc/resolv.conf"].map(modeOf)).toEqual([0o700, 0o600]);
    expect(readFileSync(join(root, "etc/resolv.conf"), "utf8")).toBe("nameserver 192.0.2.1\n");
  });

  it.each([
    ["tmp", "../outside"],
    ["run", "../outside"],
    ["run", "/etc"],
    ["etc", "../outside"],
    ["etc", "nowhere"],
  ])("fails with PATH_REFUSED if /%s is a link to %s, and makes nothing there", (name, target) => {
    symlinkSync(target, join(root, name));
    expect(prepare).toThrow(expect.objectContaining({ reason: "PATH_REFUSED" }));
    expect(readdirSync(join(base, "outside"))).toEqual([]);
  });

  it("fails with PATH_REFUSED if a file is there instead of a directory", () => {
    writeFileSync(join(root, "tmp"), "");
    expect(prepare).toThrow(expect.objectContaining({ reason: "PATH_REFUSED" }));
  });

  it("replaces a link or a directory at the path of the file, and nothing that a link leads to", () => {
    writeFileSync(join(base, "outside/kept"), "kept");
    mkdirSync(join(root, "etc"));
    symlinkSync("../../outside/kept", join(root, "etc/resolv.conf"));
    prepare();
    expect(lstatSync(join(root, "etc/resolv.conf")).isFile()).toBe(true);
    rmSync(join(root, "etc/resolv.conf"));
    mkdirSync(join(root, "etc/resolv.conf/deep"), { recursive: true });
    symlinkSync("../../../../outside", join(root, "etc/resolv.conf/deep/out"));
    prepare();
    expect(lstatSync(join(root, "etc/resolv.conf")).isFile()).toBe(true);
    expect(readFileSync(join(base, "outside/kept"), "utf8")).toBe("kept");
  });
});
