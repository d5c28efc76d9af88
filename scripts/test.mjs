import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { parseArguments } from "./check/arguments.mjs";
import { listChecks } from "./check/checks.mjs";
import { runJestProject } from "./check/jest.mjs";
import { summarize, tallyCheck } from "./check/tally.mjs";

async function runCheck(check, { run, print }) {
  const reason = await check.skipped?.();
  if (reason !== undefined) {
    print(`${check.name}: not run, ${reason}`);
    return { passed: 0, skipped: 0, failures: [] };
  }
  const code = exitCodeOf(await run(check.argv, { stdio: ["ignore", 1, 1] }));
  if (code !== 0 && check.onFailure === "warn") {
    print(`${check.name}: WARNING, see above (exit code ${code}); this fails nothing`);
    return tallyCheck({ name: check.name, code: 0 });
  }
  print(`${check.name}: ${code === 0 ? "passed" : `FAILED (exit code ${code})`}`);
  return tallyCheck({ name: check.name, code });
}

/** Every step runs, whatever failed before it: one run tells everything. */
async function runAll(request, context) {
  const checks = request.withChecks ? listChecks(context.toolchain) : [];
  const steps = [
    ...checks.map((check) => ({ title: check.name, work: () => runCheck(check, context) })),
    ...request.projects.map((name) => ({
      title: `tests: ${name}`,
      work: () => runJestProject(name, { ...context, ...request }),
    })),
  ];
  const tallies = [];
  for (const [index, step] of steps.entries()) {
    context.print(`\n=== ${index + 1}/${steps.length} ${step.title}`);
    tallies.push(await step.work());
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
  const tallies = await runAll(request, context);
  const summary = summarize(tallies, { expectsTests: request.projects.length > 0 });
  if (summary.failures.length > 0)
    context.print(["\nfailed:", ...summary.failures.map((name) => `  ${name}`)].join("\n"));
  context.print(`\n${summary.line}`);
  return summary.exitCode;
});
