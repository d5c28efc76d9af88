const SKIPPED = new Set(["pending", "skipped", "todo", "disabled"]);

/** The tally of one step that passes or fails as a whole. */
export function tallyCheck({ name, code }) {
  const failures = code === 0 ? [] : [`${name} (exit code ${code})`];
  return { passed: code === 0 ? 1 : 0, skipped: 0, failures };
}

const titlesOf = (report, isWanted) =>
  report.testResults.flatMap((file) =>
    (file.assertionResults ?? []).filter(({ status }) => isWanted(status)).map(({ fullName }) => fullName),
  );

/**
 * The tally of one jest run from its JSON report. A run without a report has crashed. A run that jest itself calls
 * failed is never counted as clean, whatever its numbers say. With `skips: "refuse"`, a skipped or todo test is a
 * failure unless `allowedSkips` names it.
 * @param {{ name: string, report: any, code: number, skips: string, allowedSkips: readonly any[] }} run
 */
export function tallyJest({ name, report, code, skips, allowedSkips }) {
  if (report === undefined)
    return { passed: 0, skipped: 0, failures: [`${name}: jest ended without a report (exit code ${code})`] };
  const failures = titlesOf(report, (status) => status === "failed").map((title) => `${name}: ${title}`);
  for (const file of report.testResults) {
    // A file that cannot be loaded has no tests to report.
    if (file.status === "failed" && !(file.assertionResults ?? []).some(({ status }) => status === "failed")) {
      failures.push(`${name}: ${file.name} did not run`);
    }
  }
  const allowed = new Set(allowedSkips.map(({ test }) => test));
  const skipped = titlesOf(report, (status) => SKIPPED.has(status));
  const refused = skips === "refuse" ? skipped.filter((title) => !allowed.has(title)) : [];
  failures.push(...refused.map((title) => `${name}: ${title} is skipped, and no reason is listed`));
  if (failures.length === 0 && (code !== 0 || report.success !== true))
    failures.push(`${name}: jest ended with exit code ${code}`);
  return { passed: report.numPassedTests, skipped: skipped.length - refused.length, failures };
}

/** Sums tallies into the exit code and the last line. Nothing counted at all, or no test where tests were asked for, fails. */
export function summarize(tallies, { expectsTests }) {
  const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
  const skipped = tallies.reduce((sum, tally) => sum + tally.skipped, 0);
  const failures = tallies.flatMap((tally) => tally.failures);
  const tests = tallies.filter((tally) => tally.isTests === true);
  const ran = tests.reduce((sum, tally) => sum + tally.passed + tally.failures.length, 0);
  if (expectsTests && ran === 0) failures.push("no test ran");
  if (passed + failures.length === 0) failures.push("nothing ran");
  const line = `${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  return { failures, line, exitCode: failures.length === 0 ? 0 : 1 };
}

/**
 * Entries of the allow list; one without a reason is refused.
 * @returns {{ test: string, reason: string }[]}
 */
export function parseAllowedSkips(text) {
  const entries = JSON.parse(text);
  for (const { test, reason } of entries) {
    if (typeof test !== "string" || typeof reason !== "string" || reason.trim() === "") {
      throw new Error("an allowed skip needs the full name of its test and a reason");
    }
  }
  return entries;
}
