import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { parseArguments } from "./check/arguments.mjs";
import { listChecks } from "./check/checks.mjs";
import { runJestProject } from "./check/jest.mjs";
import { runInLanes } from "./check/lanes.mjs";
import { summarize, tallyCheck } from "./check/tally.mjs";
import { provideTestParts } from "./check/test-parts.mjs";

async function runCheck(check, { run, print, output = 1, before = [] }) {
  const reason = await check.skipped?.();
  if (reason !== undefined) {
    print(`${check.name}: not run, ${reason}`);
    return { passed: 0, skipped: 0, failures: [] };
  }
  const code = exitCodeOf(await run([...before, ...check.argv], { stdio: ["ignore", output, output] }));
  if (code !== 0 && check.onFailure === "warn") {
    print(`${check.name}: WARNING, see above (exit code ${code}); this fails nothing`);
    return tallyCheck({ name: check.name, code: 0 });
  }
  print(`${check.name}: ${code === 0 ? "passed" : `FAILED (exit code ${code})`}`);
  return tallyCheck({ name: check.name, code });
}

/**
 * Tests on real storage and containers wait a lot, so two of their projects run at once, and what needs the processor alone
 * (checks, unit tests) beside them. Every step runs, whatever failed before it: one run tells everything.
 */
const LANES = 2;
const NEEDS_PROCESSOR_ALONE = new Set(["unit"]);

function listSteps(request, context) {
  const checks = request.withChecks ? listChecks(context.toolchain) : [];
  const ofCheck = (check) => ({ title: check.name, work: (options) => runCheck(check, { ...context, ...options }) });
  const ofProject = (name) => ({
    title: `tests: ${name}`,
    work: (options) => runJestProject(name, { ...context, ...request, ...options }),
  });
  const [light, heavy] = [false, true].map((isHeavy) =>
    request.projects.filter((name) => NEEDS_PROCESSOR_ALONE.has(name) === isHeavy).map(ofProject),
  );
  return { shared: light, beside: [...checks.map(ofCheck), ...heavy] };
}

/** What has nothing to run beside is a lane of its own, which is seen at once. */
async function runAll(request, context) {
  const { shared, beside } = listSteps(request, context);
  const isAlone = shared.length === 0 || beside.length === 0;
  const lanes = isAlone ? { shared: [...shared, ...beside], beside: [], width: 1 } : { shared, beside, width: LANES };
  return await runInLanes(lanes, context);
}

let request;
try {
  request = parseArguments(process.argv.slice(2));
} catch (cause) {
  process.stdout.write(`${cause.message}\n`);
  process.exit(2);
}

await main(async (context) => {
  if (request.projects.length > 0) await provideTestParts({ env: context.toolchain.environment, print: context.print });
  const tallies = await runAll(request, context);
  const summary = summarize(tallies, { expectsTests: request.projects.length > 0 });
  if (summary.failures.length > 0)
    context.print(["\nfailed:", ...summary.failures.map((name) => `  ${name}`)].join("\n"));
  context.print(`\n${summary.line}`);
  return summary.exitCode;
});
