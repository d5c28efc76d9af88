import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { withoutServiceStarts } from "../../scripts/bootstrap/service-policy.mjs";
import { describeMissing, manualCommands, parseOsRelease, refusal } from "../../scripts/bootstrap/system.mjs";
import { isStatic, probePart, readSystemParts } from "../../scripts/bootstrap/system-parts.mjs";

interface Part {
  readonly name: string;
  readonly commands: readonly string[];
  readonly package: string;
  readonly suite: string;
  readonly neededFor: string;
  readonly without: string;
}

const parts = readSystemParts() as readonly Part[];
const debian = {
  platform: "linux",
  isRoot: true,
  os: { ID: "debian", VERSION_CODENAME: "bookworm" },
  aptForbidden: false,
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-house-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const provide = (name: string, script: string) => {
  const file = path.join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
};

/** A part that is found in the test's own folder only, whatever the machine has. */
const fakePart = (more: object = {}) => ({
  ...{ name: "x", commands: ["turnbox-house-x"], package: "x", suite: "release", neededFor: "", without: "" },
  ...more,
});
const problemOf = async (part: object) => (await probePart(part, { PATH: `${folder}:/usr/bin:/bin` }))?.problem;

describe("system-parts.json", () => {
  it("says for every part what it is needed for, what works without it, and where it comes from", () => {
    expect(parts.map((part) => part.name)).toContain("runsc");
    for (const part of parts) {
      for (const text of [part.name, part.package, part.neededFor, part.without]) expect(text).toMatch(/\S/);
      expect(["release", "backports"]).toContain(part.suite);
      expect(part.commands.length).toBeGreaterThan(0);
    }
  });

  it("never asks for zfsutils-linux, which conflicts with zfs-fuse", () => {
    expect(parts.map((part) => part.package)).not.toContain("zfsutils-linux");
  });
});

describe("probePart", () => {
  it("misses a command that is nowhere", async () => {
    expect(await problemOf(fakePart())).toBe("turnbox-house-x not found");
  });

  it("accepts a command without further wishes", async () => {
    provide("turnbox-house-x", "exit 0");
    expect(await problemOf(fakePart())).toBeUndefined();
  });

  it.each([
    ["20221219", "version 20221219 is older than 20240101"],
    ["20240729", undefined],
    ["unknown", "turnbox-house-x --version tells no version"],
  ])("compares the version %s", async (version, problem) => {
    provide("turnbox-house-x", `echo "version 0.0~${version}.0"`);
    const asked = { argv: ["turnbox-house-x", "--version"], pattern: "(\\d{8})" };
    expect(await problemOf(fakePart({ version: asked, minimumVersion: "20240101" }))).toBe(problem);
  });

  it("refuses a dynamically linked or interpreted command if a static one is needed", async () => {
    copyFileSync(process.execPath, path.join(folder, "turnbox-house-x"));
    expect(await problemOf(fakePart({ static: true }))).toBe("turnbox-house-x is not statically linked");
    provide("turnbox-house-x", "exit 0");
    expect(await problemOf(fakePart({ static: true }))).toBe("turnbox-house-x is not statically linked");
  });

  it("asks for a device that no package brings", async () => {
    provide("turnbox-house-x", "exit 0");
    const probe = await probePart(fakePart({ devices: ["/dev/turnbox-house"] }), { PATH: `${folder}:/usr/bin:/bin` });
    expect(probe).toMatchObject({ fix: "machine", problem: "/dev/turnbox-house does not exist" });
  });

  it("takes what the kernel has instead of a package", async () => {
    provide("turnbox-house-k", "echo zfs-kmod-2.1");
    const other = { name: "kernel", commands: ["turnbox-house-k"], argv: ["turnbox-house-k"], prints: "zfs-kmod" };
    expect(await problemOf(fakePart({ insteadOf: other }))).toBeUndefined();
    provide("turnbox-house-k", "echo only the tools");
    expect(await problemOf(fakePart({ insteadOf: other }))).toBe("turnbox-house-x not found");
  });
});

describe("isStatic", () => {
  const elf = (type: number) => {
    const bytes = Buffer.alloc(64 + 56);
    bytes.write("\x7fELF\x02\x01", "latin1");
    bytes.writeBigUInt64LE(64n, 32);
    bytes.writeUInt16LE(56, 54);
    bytes.writeUInt16LE(1, 56);
    bytes.writeUInt32LE(type, 64);
    return bytes;
  };
  it("is true only for an ELF file that asks for no interpreter", () => {
    expect(isStatic(elf(1))).toBe(true);
    expect(isStatic(elf(3))).toBe(false);
    expect(isStatic(Buffer.from("#!/bin/sh\n"))).toBe(false);
  });
});

describe("refusal", () => {
  it.each([
    [debian, undefined],
    [{ ...debian, os: { ID: "mint", ID_LIKE: "ubuntu debian" } }, undefined],
    [{ ...debian, isRoot: false }, "this user is not root"],
    [{ ...debian, aptForbidden: true }, "TURNBOX_NO_APT=1 is set"],
    [{ ...debian, os: { ID: "fedora" } }, "this system (fedora) is not Debian or like it"],
    [{ ...debian, platform: "darwin" }, "a sandbox-host runs on Linux only, this is darwin"],
  ])("of %j is %s", (machine, reason) => {
    expect(refusal(machine)).toBe(reason);
  });
});

describe("describeMissing", () => {
  const missing = parts.map((part) => ({ part, fix: "package", problem: "not found" }));

  it("names cost, what works without, and the exact commands", () => {
    const text = describeMissing(missing, { ...debian, isRoot: false }).join("\n");
    for (const part of parts) {
      expect(text).toContain(`needed for: ${part.neededFor}`);
      expect(text).toContain(`without it: ${part.without}`);
    }
    expect(text).toContain("sudo apt-get install --no-install-recommends zfs-fuse nftables");
    expect(text).toContain("sudo apt-get install --no-install-recommends -t bookworm-backports runsc");
  });

  it("names the commands to look for on systems without apt", () => {
    expect(manualCommands(parts, { ...debian, os: { ID: "fedora" } })).toEqual([]);
    expect(describeMissing(missing, { ...debian, os: { ID: "fedora" } }).at(-1)).toContain("that bring runsc, zfs");
  });
});

describe("parseOsRelease", () => {
  it("removes quotes and ignores other lines", () => {
    expect(parseOsRelease('ID=debian\n# note\nID_LIKE="a b"\n\n')).toEqual({ ID: "debian", ID_LIKE: "a b" });
  });
});

describe("withoutServiceStarts", () => {
  it("leaves no policy behind, also after a failure", async () => {
    const file = path.join(folder, "policy-rc.d");
    await expect(withoutServiceStarts(() => Promise.reject(new Error("apt failed")), file)).rejects.toThrow(
      "apt failed",
    );
    expect(await withoutServiceStarts(async () => rmSync(file), file)).toBeUndefined();
  });

  it("keeps the policy that a machine already has", async () => {
    provide("policy-rc.d", "exit 104");
    const file = path.join(folder, "policy-rc.d");
    await withoutServiceStarts(async () => undefined, file);
    rmSync(file); // throws when it has gone
  });
});
