import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

const root = path.resolve(import.meta.dirname, "../..");
const folder = "packages/sandbox-host/programs";

/** By the end of a name: the command that reads such a program and finds its faults, without effect. */
const CHECKS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  ".awk": ["/bin/busybox", "awk", "-f"],
  ".pl": ["perl", "-wc"],
  ".sh": ["sh", "-n"],
};
const PROGRAMS = readdirSync(path.join(root, folder));

describe("the programs in other languages that a host runs", () => {
  it.each(PROGRAMS)("%s has no error and no warning", (name) => {
    const program = path.join(root, folder, name);
    const [command, ...args] = CHECKS[path.extname(name)] ?? ["there is no check for it"];
    const { status, stderr } = spawnSync(command, [...args, program], { encoding: "utf8", input: "" });
    expect([status, stderr]).toEqual([0, name.endsWith(".pl") ? `${program} syntax OK\n` : ""]);
  });

  it.each(PROGRAMS)("%s names the module that runs it", (name) => {
    const [, owner = ""] =
      /The owner is\s+(?:# )?(src\/[a-z0-9/-]+\.ts)/.exec(readFileSync(path.join(root, folder, name), "utf8")) ?? [];
    expect(readFileSync(path.join(root, "packages/sandbox-host", owner), "utf8")).toContain(`"${name}"`);
  });

  it("are found from the bundle, where their owner is one file with all others", () => {
    const bundle = path.join(root, "packages/sandbox-host/bundle/main.js");
    const [, owner = ""] =
      /new URL\("([^"]*runtime\/program\.js)", import\.meta\.url\)/.exec(readFileSync(bundle, "utf8")) ?? [];
    expect(path.relative(root, path.resolve(path.dirname(bundle), path.dirname(owner), "../../programs"))).toBe(folder);
  });
});
