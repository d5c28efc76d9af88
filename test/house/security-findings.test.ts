import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { REPO } from "../support/process.ts";

/** What a security reading and live runs have found, and what was closed first. */
const FINDINGS = ["F1", "F3", "F4", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13", "F30"] as const;
const OTHERS = ["restarts", "streams", "applets", "names", "upgrades", "fuzzer"] as const;

interface Row {
  readonly finding: string;
  readonly commits: readonly string[];
  readonly tests: readonly { readonly file: string; readonly title: string }[];
  readonly without: string;
  readonly within: string;
}

/** The rows of the tables: finding, what it was, commits, tests, tries that got through without the guard and with it. */
function readRows(): readonly Row[] {
  const text = readFileSync(join(REPO, "docs/SECURITY-FINDINGS.md"), "utf8");
  return text
    .split("\n")
    .filter((line) => /^\| [A-Za-z]+\d*\s*\|/.test(line) && !line.startsWith("| finding"))
    .map((line) => {
      const [finding = "", , commits = "", tests = "", without = "", within = ""] = line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim());
      return {
        finding,
        commits: [...commits.matchAll(/`([0-9a-f]{7,40})`/g)].map(([, hash = ""]) => hash),
        tests: [...tests.matchAll(/`([^`]+)`: "([^"]+)"/g)].map(([, file = "", title = ""]) => ({ file, title })),
        without,
        within,
      };
    });
}

const ROWS = readRows();
const isShallow = (): boolean =>
  execFileSync("git", ["rev-parse", "--is-shallow-repository"], { cwd: REPO }).toString().trim() !== "false";

describe("docs/SECURITY-FINDINGS.md", () => {
  it.each([...FINDINGS, ...OTHERS])("has a row for %s", (finding) => {
    expect(ROWS.filter((row) => row.finding === finding)).toHaveLength(1);
  });

  it.each(ROWS)("names tests of $finding that exist", ({ tests }) => {
    expect(tests.length).toBeGreaterThan(0);
    for (const { file, title } of tests) {
      expect([file, existsSync(join(REPO, file))]).toEqual([file, true]);
      expect([title, readFileSync(join(REPO, file), "utf8").includes(title)]).toEqual([title, true]);
    }
  });

  it.each(ROWS)("counts tries without the guard of $finding and with it", ({ without, within }) => {
    for (const count of [without, within]) expect(count).toMatch(/\d/);
  });

  it.each(ROWS)("names commits of $finding that are in the history", ({ commits }) => {
    expect(commits.length).toBeGreaterThan(0);
    // A clone that was cut off has no history to look at.
    if (isShallow()) return;
    for (const hash of commits) {
      const type = execFileSync("git", ["cat-file", "-t", hash], { cwd: REPO }).toString().trim();
      expect([hash, type]).toEqual([hash, "commit"]);
    }
  });
});
