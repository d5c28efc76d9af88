import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { parseArguments } from "./check/arguments.mjs";
import { listChecks } from "./check/checks.mjs";
import { runJestProject, runSideBySide } from "./check/jest.mjs";
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

/** Unit tests use the processor, contract tests mostly wait for the storage: together they take the time of one. */
const SIDE_BY_SIDE = ["contract", "unit"];

const areTogether = ({ projects }) => SIDE_BY_SIDE.every((name) => projects.includes(name));

function listTests({ projects, ...request }, context) {
  const options = { ...context, ...request };
  const isTogether = areTogether({ projects });
  const alone = projects.filter((name) => !isTogether || !SIDE_BY_SIDE.includes(name));
  return [
    ...(isTogether
      ? [{ title: `tests: ${SIDE_BY_SIDE.join(" and ")}`, work: () => runSideBySide(SIDE_BY_SIDE, options) }]
      : []),
    ...alone.map((name) => ({ title: `tests: ${name}`, work: () => runJestProject(name, options) })),
  ];
}

/** Every step runs, whatever failed before it: one run tells everything. */
async function runAll(request, context) {
  const checks = request.withChecks ? listChecks(context.toolchain) : [];
  const isBeside = ({ place }) => place === "beside tests" && areTogether(request);
  const more = checks.filter(isBeside).map((check) => (besides) => runCheck(check, besides));
  const steps = [
    ...checks
      .filter((check) => !isBeside(check))
      .map((check) => ({ title: check.name, work: () => runCheck(check, context) })),
    ...listTests(request, { ...context, more }),
  ];
  const tallies = [];
  for (const [index, step] of steps.entries()) {
    context.print(`\n=== ${index + 1}/${steps.length} ${step.title}`);
    tallies.push(...[await step.work()].flat());
  }
  return tallies;
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
