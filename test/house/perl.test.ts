import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

const root = path.resolve(import.meta.dirname, "../..");

/** The programs in Perl, by their package. */
const PROGRAMS = readdirSync(path.join(root, "packages"))
  .map((name) => `packages/${name}/perl`)
  .filter((folder) => existsSync(path.join(root, folder)))
  .flatMap((folder) => readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`));

describe("the programs in Perl", () => {
  it("are found", () => {
    expect(PROGRAMS).toContain("packages/core/perl/helper.pl");
  });

  it.each(PROGRAMS)("%s has no error and no warning", (program) => {
    const { status, stderr } = spawnSync("perl", ["-wc", path.join(root, program)], { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, `${path.join(root, program)} syntax OK\n`]);
  });

  it.each(["packages/sandbox-host/bundle/main.js", "packages/orchestrator/bundle/main.js"])(
    "are found from %s, where their owner is one file with all others",
    (bundle) => {
      const text = readFileSync(path.join(root, bundle), "utf8");
      const [, owner = ""] = /new URL\("([^"]*\/perl\/perl\.js)", import\.meta\.url\)/.exec(text) ?? [];
      const folder = path.resolve(root, path.dirname(bundle), path.dirname(owner), "../../perl");
      expect(path.relative(root, folder)).toBe("packages/core/perl");
    },
  );
});
