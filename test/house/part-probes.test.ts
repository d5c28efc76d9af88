import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import { probePart as probeForDoctor } from "../../packages/sandbox-host/src/doctor/probe-part.ts";
import type { SystemPart } from "../../packages/sandbox-host/src/doctor/system-parts.ts";
import { probePart as probeForBootstrap } from "../../scripts/bootstrap/system-parts.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "turnbox-probes-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const version = { argv: ["turnbox-probe-x", "--version"], pattern: "version (\\S+)" } as const;
const insteadOf = {
  name: "another",
  commands: ["turnbox-probe-x"],
  argv: ["turnbox-probe-x"],
  prints: "kmod",
  trialRemedy: "",
} as const;

describe("the bootstrap and doctor read system-parts.json alike", () => {
  it.each<[string, Partial<SystemPart>, string | undefined]>([
    ["is nowhere", {}, undefined],
    ["is there", {}, "exit 0"],
    ["tells its version", { version }, "echo version 1.2"],
    ["tells it as an error", { version }, "echo version 1.2 >&2; exit 1"],
    ["does not run", { version }, "exit 126"],
    ["need not tell its version", { version: { ...version, optional: true } }, "exit 1"],
    ["is new enough", { version, minimumVersion: "1.9" }, "echo version 1.10"],
    ["is too old", { version, minimumVersion: "1.10" }, "echo version 1.9"],
    ["is a script", { static: true }, "exit 0"],
    ["lacks its device", { devices: ["/dev/turnbox-probe"] }, "exit 0"],
    ["has an alternative", { commands: ["turnbox-probe-y"], insteadOf }, "echo kmod"],
    ["has half an alternative", { commands: ["turnbox-probe-y"], insteadOf }, "echo tools only"],
    ["has a failing alternative", { commands: ["turnbox-probe-y"], insteadOf }, "echo kmod; exit 1"],
  ])("where a part %s", async (_what, more, script) => {
    if (script !== undefined) {
      const file = path.join(folder, "turnbox-probe-x");
      writeFileSync(file, `#!/bin/sh\n${script}\n`);
      chmodSync(file, 0o755);
    }
    const part: SystemPart = {
      ...{ name: "x", commands: ["turnbox-probe-x"], package: "x", suite: "release", neededFor: "", without: "" },
      ...more,
    };
    const PATH = `${folder}:/usr/bin:/bin`;
    const ofDoctor = await probeForDoctor(part, {
      runner: createChildCommandRunner({ path: PATH }),
      path: PATH,
      machine: { user: "root", codename: "" },
      signal: AbortSignal.timeout(10_000),
    });
    const ofBootstrap = (await probeForBootstrap(part, { PATH })) as { readonly problem: string } | undefined;
    expect(ofDoctor.status === "found" ? undefined : ofDoctor.detail).toBe(ofBootstrap?.problem);
  });
});
