import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

const root = path.resolve(import.meta.dirname, "../..");

/** By the end of a name: the command that reads such a program and finds its faults, without effect. */
const CHECKS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  ".awk": ["/bin/busybox", "awk", "-f"],
  ".pl": ["perl", "-wc"],
  ".sh": ["sh", "-n"],
};

/** The programs in other languages, by their path. */
const PROGRAMS = readdirSync(path.join(root, "packages"))
  .map((name) => `packages/${name}/programs`)
  .filter((folder) => existsSync(path.join(root, folder)))
  .flatMap((folder) => readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`));

describe("the programs in other languages that a service runs", () => {
  it("are found", () => {
    expect(PROGRAMS).toContain("packages/sandbox-host/programs/helper.pl");
  });

  it.each(PROGRAMS)("%s has no error and no warning", (name) => {
    const program = path.join(root, name);
    const [command, ...args] = CHECKS[path.extname(name)] ?? ["there is no check for it"];
    const { status, stderr } = spawnSync(command, [...args, program], { encoding: "utf8", input: "" });
    expect([status, stderr]).toEqual([0, name.endsWith(".pl") ? `${program} syntax OK\n` : ""]);
  });

  it.each(PROGRAMS)("%s names the module that runs it", (name) => {
    const text = readFileSync(path.join(root, name), "utf8");
    const [, owner = ""] = /The owner is\s+(?:# )?(src\/[a-z0-9/-]+\.ts)/.exec(text) ?? [];
    const module = readFileSync(path.join(root, path.dirname(name), "..", owner), "utf8");
    expect(module).toMatch(new RegExp(`["/]${path.basename(name).replace(".", "\\.")}"`));
  });

  it.each([
    ["packages/sandbox-host", "system/program.js", "../../programs"],
    ["packages/orchestrator", "provisioner/local-process/without-membarrier.js", "../../../programs"],
  ])("are found from the bundle of %s, where %s is one file with all others", (folder, module, programs) => {
    const bundle = path.join(root, folder, "bundle/main.js");
    const [owner] = [...readFileSync(bundle, "utf8").matchAll(/new URL\("([^"]*)", import\.meta\.url\)/g)]
      .map(([, place = ""]) => place)
      .filter((place) => place.endsWith(module));
    const found = path.resolve(path.dirname(bundle), path.dirname(owner ?? "missing"), programs);
    expect(path.relative(root, found)).toBe(`${folder}/programs`);
  });
});
