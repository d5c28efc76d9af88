import { describe, expect, it } from "@jest/globals";
import { parseArguments, PROJECTS } from "../../scripts/check/arguments.mjs";
import { parseAllowedSkips, summarize, tallyCheck, tallyJest } from "../../scripts/check/tally.mjs";

type Status = "passed" | "failed" | "pending" | "todo";

/** A jest report of one file, reduced to what the tally reads. */
const reportOf = (tests: Readonly<Record<string, Status>>, more: object = {}) => {
  const assertionResults = Object.entries(tests).map(([fullName, status]) => ({ fullName, status }));
  const failed = assertionResults.some(({ status }) => status === "failed");
  return {
    success: !failed,
    numPassedTests: assertionResults.filter(({ status }) => status === "passed").length,
    testResults: [{ name: "x.test.ts", status: failed ? "failed" : "passed", assertionResults }],
    ...more,
  };
};

const sum = (report: object | undefined, { code = 0, skips = "count", allowedSkips = [] as object[] } = {}) => {
  const tally = tallyJest({ name: "unit", report, code, skips, allowedSkips });
  return summarize([{ ...tally, isTests: true }], { expectsTests: true });
};

describe("the summary of a test run", () => {
  it("is one line and exit code 0 when everything passed", () => {
    expect(sum(reportOf({ a: "passed", b: "passed" }))).toMatchObject({ line: "2 passed, 0 failed", exitCode: 0 });
  });

  it("fails for one failing test among passing ones", () => {
    const summary = sum(reportOf({ a: "passed", b: "failed" }), { code: 1 });
    expect(summary).toMatchObject({ line: "1 passed, 1 failed", exitCode: 1, failures: ["unit: b"] });
  });

  it("fails for a failing test even when jest claims success", () => {
    expect(sum(reportOf({ a: "failed" }, { success: true })).exitCode).toBe(1);
  });

  it("fails when jest ended badly though every test passed", () => {
    expect(sum(reportOf({ a: "passed" }), { code: 1 })).toMatchObject({ line: "1 passed, 1 failed", exitCode: 1 });
  });

  it("fails for a file that could not be loaded", () => {
    const testResults = [{ name: "broken.test.ts", status: "failed", assertionResults: [] }];
    const summary = sum({ success: false, numPassedTests: 0, testResults }, { code: 1 });
    expect(summary).toMatchObject({ exitCode: 1, failures: ["unit: broken.test.ts did not run"] });
  });

  it("fails when jest crashed and left no report", () => {
    expect(sum(undefined, { code: 137 })).toMatchObject({ line: "0 passed, 1 failed", exitCode: 1 });
  });

  it("fails when no test ran", () => {
    expect(sum({ success: true, numPassedTests: 0, testResults: [] })).toMatchObject({ exitCode: 1 });
    expect(sum(reportOf({ a: "pending" }))).toMatchObject({ exitCode: 1 });
    expect(summarize([], { expectsTests: false })).toMatchObject({ exitCode: 1 });
  });

  it("fails when only the checks passed and tests were asked for", () => {
    expect(summarize([tallyCheck({ name: "lint", code: 0 })], { expectsTests: true })).toMatchObject({ exitCode: 1 });
  });

  it("counts each check as one", () => {
    const tallies = [tallyCheck({ name: "lint", code: 0 }), tallyCheck({ name: "format", code: 2 })];
    expect(summarize(tallies, { expectsTests: false })).toMatchObject({
      line: "1 passed, 1 failed",
      exitCode: 1,
      failures: ["format (exit code 2)"],
    });
  });
});

describe("skipped tests", () => {
  const report = reportOf({ a: "passed", b: "pending", c: "todo" });

  it("are counted", () => {
    expect(sum(report)).toMatchObject({ line: "1 passed, 0 failed, 2 skipped", exitCode: 0 });
  });

  it("fail if they are refused, unless a reason is listed", () => {
    expect(sum(report, { skips: "refuse" })).toMatchObject({ line: "1 passed, 2 failed", exitCode: 1 });
    const allowedSkips = [
      { test: "b", reason: "needs a cloud account" },
      { test: "c", reason: "needs a second machine" },
    ];
    expect(sum(report, { skips: "refuse", allowedSkips })).toMatchObject({ exitCode: 0 });
  });

  it("need a reason in the list", () => {
    expect(() => parseAllowedSkips('[{"test":"b","reason":" "}]')).toThrow("a reason");
    expect(parseAllowedSkips('[{"test":"b","reason":"why"}]')).toHaveLength(1);
  });
});

describe("the arguments of npm test", () => {
  it("mean everything when there are none", () => {
    expect(parseArguments([])).toEqual({ isWhole: true, withChecks: true, projects: PROJECTS, jestArguments: [] });
  });

  it("narrow to projects and paths", () => {
    expect(parseArguments(["--project", "unit", "core/src"])).toEqual({
      isWhole: false,
      withChecks: false,
      projects: ["unit"],
      jestArguments: ["core/src"],
    });
    expect(parseArguments(["--project=e2e,unit"]).projects).toEqual(["unit", "e2e"]);
  });

  it("narrow to the checks", () => {
    expect(parseArguments(["--checks"])).toMatchObject({ withChecks: true, projects: [] });
  });

  it("refuse a project that does not exist", () => {
    expect(() => parseArguments(["--project", "units"])).toThrow("no test project units");
  });
});
