import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createChildCommandRunner, SandboxError } from "@turnbox/core";
import { createScriptedCommandRunner, type ScriptedAnswer } from "@turnbox/core/testing";
import { createFakeRuntime } from "../runtime/fake/fake-runtime.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type DoctorDeps, examine, type PartReport } from "./examine.ts";
import { codenameOf, type Machine } from "./machine.ts";
import { readSystemParts, type SystemPart } from "./system-parts.ts";

const ROOT: Machine = { user: "root", codename: "bookworm" };
const OTHER: Machine = { user: "other", codename: "bookworm" };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "doctor-test-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Puts a program into the test's own folder. */
const provide = (name: string, script = "exit 0"): void => {
  const file = join(folder, name);
  rmSync(file, { force: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
};

/** A part that is found in the test's own folder only, whatever the machine has. */
const fakePart = (more: Partial<SystemPart> = {}): SystemPart => ({
  name: "x",
  commands: ["turnbox-doctor-x"],
  package: "x-package",
  suite: "release",
  neededFor: "a test",
  without: "no test",
  ...more,
});

const path = (): string => `${folder}:/usr/bin:/bin`;

async function report(changes: Partial<DoctorDeps> = {}): Promise<readonly PartReport[]> {
  const { parts } = await examine({
    runner: createChildCommandRunner({ path: path() }),
    path: path(),
    runtime: createFakeRuntime(),
    required: new Set(["zfs", "runsc", "runtime"]),
    config: [],
    signal: AbortSignal.timeout(20_000),
    machine: ROOT,
    systemParts: [],
    ...changes,
  });
  return parts;
}

const examinePart = async (part: SystemPart, machine = ROOT): Promise<PartReport | undefined> =>
  (await report({ systemParts: [part], machine })).find(({ name }) => name === part.name);

const named = (parts: readonly PartReport[], start: string): PartReport | undefined =>
  parts.find(({ name }) => name.startsWith(start));

const VERSION = { argv: ["turnbox-doctor-x", "--version"], pattern: "version (\\S+)" } as const;

describe("doctor looks for a part", () => {
  it.each<[string, Partial<SystemPart>, string | undefined, string]>([
    ["is nowhere", {}, undefined, "turnbox-doctor-x not found"],
    ["is there", {}, "exit 0", ""],
    ["tells its version", { version: VERSION }, "echo version 1.2", ""],
    ["tells it as an error", { version: VERSION }, "echo version 1.2 >&2", ""],
    ["does not run", { version: VERSION }, "exit 126", "turnbox-doctor-x --version tells no version"],
    ["need not tell its version", { version: { ...VERSION, optional: true } }, "exit 1", ""],
    ["is new enough", { version: VERSION, minimumVersion: "1.9" }, "echo version 1.10", ""],
    ["is too old", { version: VERSION, minimumVersion: "1.10" }, "echo version 1.9", "version 1.9 is older than 1.10"],
    ["is a script", { static: true }, "exit 0", "turnbox-doctor-x is not statically linked"],
    ["lacks its device", { devices: ["/dev/turnbox-doctor"] }, "exit 0", "/dev/turnbox-doctor does not exist"],
  ])("if it %s", async (_what, more, script, problem) => {
    if (script !== undefined) provide("turnbox-doctor-x", script);
    const part = fakePart(more);
    const found = await examinePart(part);
    expect(found).toMatchObject({ detail: problem });
    expect(found?.status === "found").toBe(problem === "");
  });

  it("and distinguishes a dynamically linked program from a static one", async () => {
    copyFileSync(process.execPath, join(folder, "turnbox-doctor-x"));
    expect(await examinePart(fakePart({ static: true }))).toMatchObject({ status: "broken" });
  });
});

describe("doctor names a remedy", () => {
  it("with the machine's own release, and none if nothing is wrong", async () => {
    const part = fakePart({ suite: "backports" });
    const command = "apt-get install --no-install-recommends -t bookworm-backports x-package";
    expect((await examinePart(part))?.remedy).toBe(command);
    expect((await examinePart(part, OTHER))?.remedy).toBe(`sudo ${command}`);
    expect((await examinePart(part, { user: "root", codename: "" }))?.remedy).toContain("turnbox-doctor-x");
    provide("turnbox-doctor-x");
    expect((await examinePart(part))?.remedy).toBe("");
  });

  it("for a device, which no package contains", async () => {
    provide("turnbox-doctor-x");
    const part = fakePart({ devices: ["/dev/turnbox-doctor"], deviceRemedy: "load the module" });
    expect(await examinePart(part)).toMatchObject({ status: "broken", remedy: "load the module" });
  });

  it.each([
    ["ID=debian\nVERSION_CODENAME=bookworm\n", "bookworm"],
    ['ID=ubuntu\nID_LIKE="debian"\nVERSION_CODENAME=noble', "noble"],
    ["ID=fedora\nVERSION_CODENAME=x", ""],
    ["", ""],
  ])("by the release in %j", (text, codename) => {
    expect(codenameOf(text)).toBe(codename);
  });
});

describe("doctor tries zfs", () => {
  const NOT_RUNNING = {
    kind: "exits",
    exitCode: 1,
    stderr: "connect: Connection refused\nPlease make sure that the zfs-fuse daemon is running.",
  } as const;

  /** The report on zfs, where the kernel has none or one, and `zpool list` does as told. */
  async function tryZfs(list: ScriptedAnswer, options: { kernel?: "zfs"; machine?: Machine } = {}) {
    for (const name of ["zfs", "zpool", "zfs-fuse"]) provide(name);
    const part = (await readSystemParts()).find(({ name }) => name === "zfs");
    if (part === undefined) throw new Error("zfs is no part");
    const version: ScriptedAnswer = { kind: "exits", stdout: "zfs-2.1.11\nzfs-kmod-2.1.11\n" };
    const runner = createScriptedCommandRunner(({ command, args }) => {
      if (command === "zpool" && args[0] === "list") return list;
      if (command === "zfs" && options.kernel === "zfs") return version;
      return command === "dpkg-query" ? { kind: "exits", stdout: "0.7.0-25" } : { kind: "exits", exitCode: 1 };
    });
    const { devices: _none, ...withoutDevices } = part;
    const machine = options.machine ?? ROOT;
    return {
      runner,
      zfs: named(await report({ runner, systemParts: [withoutDevices], machine }), "zfs"),
    };
  }

  it("and finds it if the daemon answers", async () => {
    expect((await tryZfs({ kind: "exits", stdout: "pool1" })).zfs).toMatchObject({
      status: "found",
      version: "0.7.0-25",
      required: true,
      detail: "",
      remedy: "",
    });
  });

  it("and starts no daemon if none runs, because the host will", async () => {
    const { runner, zfs } = await tryZfs(NOT_RUNNING);
    expect(zfs).toMatchObject({ status: "found", detail: "not running; the host starts it", remedy: "" });
    expect(runner.calls.map(({ command }) => command)).not.toContain("zfs-fuse");
  });

  it("and reports it as broken if the daemon does not answer in time", async () => {
    const { runner, zfs } = await tryZfs({ kind: "signaled", signal: "SIGKILL" });
    expect(zfs).toMatchObject({
      status: "broken",
      required: true,
      detail: "zpool list -H -o name did not answer within 5 s",
      remedy: expect.stringContaining("zfs-fuse"),
    });
    expect(runner.calls.find(({ command }) => command === "zpool")?.deadlineMs).toBe(5000);
  });

  it("and reports it as broken if it is refused, with root as the remedy for other users", async () => {
    const denied = { kind: "exits", exitCode: 1, stderr: "Permission denied" } as const;
    expect((await tryZfs(denied, { machine: OTHER })).zfs).toMatchObject({
      status: "broken",
      detail: expect.stringContaining("Permission denied"),
      remedy: expect.stringContaining("root"),
    });
  });

  it("in the kernel too, which needs no daemon", async () => {
    expect((await tryZfs({ kind: "exits" }, { kernel: "zfs" })).zfs).toMatchObject({
      status: "found",
      version: "zfs-2.1.11",
      detail: "OpenZFS in the kernel",
    });
    expect((await tryZfs(NOT_RUNNING, { kernel: "zfs" })).zfs).toMatchObject({
      status: "broken",
      remedy: expect.stringContaining("modprobe zfs"),
    });
  });
});

describe("doctor looks at the user", () => {
  const failing = (error: Error): Runtime => ({
    ...createFakeRuntime(),
    kind: "gvisor",
    open: () => Promise.reject(error),
  });
  const unavailable = new SandboxError("RUNTIME_UNAVAILABLE", "gVisor does not work here: no cgroups");

  it.each([
    [["zfs", "runsc"], true],
    [["zfs"], true],
    [["runsc"], true],
    [[], false],
  ])("who has to be root if the host needs %j: %p", async (required, isRequired) => {
    const parts = await report({ machine: OTHER, required: new Set(required) });
    expect(named(parts, "root")).toMatchObject({ status: "broken", required: isRequired });
    expect(named(parts, "root")?.remedy).toContain("sudo");
    expect(named(await report(), "root")).toMatchObject({ status: "found", remedy: "" });
  });

  it("and does not try gVisor without root", async () => {
    const parts = await report({ machine: OTHER, runtime: failing(new Error("was tried")) });
    expect(named(parts, "runtime")).toMatchObject({
      status: "broken",
      detail: expect.stringContaining("root"),
      remedy: expect.stringContaining("root"),
    });
  });

  it("and never has doctor itself as the remedy", async () => {
    const runtime = named(await report({ runtime: failing(unavailable) }), "runtime");
    expect(runtime).toMatchObject({ status: "broken", detail: unavailable.message });
    expect(runtime?.remedy).not.toContain("turnbox doctor");
    expect(runtime?.remedy).not.toBe("");
  });
});

describe("system-parts.json", () => {
  it("has a version question for every part", async () => {
    for (const part of await readSystemParts()) {
      expect({ name: part.name, version: part.version }).toEqual({ name: part.name, version: expect.anything() });
    }
  });

  it.each([
    ["nftables", "nftables v1.0.6 (Lester Gooch #5)", "1.0.6"],
    ["iproute2", "ip utility, iproute2-6.1.0, libbpf 1.1.2", "6.1.0"],
    ["iproute2", "ip utility, iproute2-ss200127", "ss200127"],
    ["busybox", "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.", "1.35.0"],
    ["bash", "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15"],
    ["debootstrap", "debootstrap 1.0.128+nmu2+deb12u2", "1.0.128+nmu2+deb12u2"],
    ["umoci", "umoci version 0.4.7+ds-3+b7", "0.4.7+ds-3+b7"],
    ["mount", "mount from util-linux 2.38.1 (libmount 2.38.1: selinux, smack)", "2.38.1"],
    ["perl", "v5.36.0", "5.36.0"],
    ["zfs", "0.7.0-25+b1", "0.7.0-25+b1"],
    ["zfs", "dpkg-query: no packages found matching zfs-fuse", undefined],
    ["runsc", "runsc version 0.0~20240729.0\nspec: 1.0.2-dev", "20240729"],
  ])("reads the version of %s out of %j", async (name, text, version) => {
    const part = (await readSystemParts()).find((one) => one.name === name);
    expect(new RegExp(part?.version?.pattern ?? "none").exec(text)?.[1]).toBe(version);
  });

  it("names no release of its own", () => {
    expect(readFileSync(new URL("../../system-parts.json", import.meta.url), "utf8")).not.toMatch(/CODENAME|bookworm/);
  });
});
