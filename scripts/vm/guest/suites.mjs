import { readFileSync } from "node:fs";
import { startChild } from "../../bootstrap/child.mjs";
import { root } from "../../bootstrap/layout.mjs";
import { runJestProject } from "../../check/jest.mjs";
import { summarize, tallyCheck } from "../../check/tally.mjs";
import { LEFT_OUT } from "./left-out.mjs";
import { smoke } from "./smoke.mjs";

/** The whole of what runs in the guest: the storage on its own, and sessions with their turns on top of it. */
const SUITES = [
  {
    project: "contract",
    paths: ["packages/sandbox-host/src/storage/zfs/"],
    others: "other adapters are the same on every machine",
  },
  {
    project: "e2e",
    paths: ["journey", "lifecycle", "turns"].map((name) => `test/e2e/${name}.test.ts`),
    others: "other files are about protocols, templates and tools",
  },
];

const print = (line) => process.stdout.write(`${line}\n`);
const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const leftOutOf = (project) => LEFT_OUT.filter((entry) => entry.project === project);

/** jest has no option for names that are not to run. */
function exclude(entries) {
  const names = entries.map(({ test }) => escape(test));
  return names.length === 0 ? [] : ["--testNamePattern", `^(?!${names.join("|")})`];
}

async function runSmoke() {
  try {
    await smoke();
    return tallyCheck({ name: "smoke", code: 0 });
  } catch (cause) {
    print(`smoke: ${cause.message}\n${cause.tail ?? ""}`);
    return tallyCheck({ name: "smoke", code: 1 });
  }
}

/** Without arguments the whole suite runs but for what is left out; an entry there that stands for no test is a failure. */
async function runSuite({ project, paths, others }, jestArguments) {
  const toolchain = { node: () => process.execPath, environment: process.env };
  const run = async (argv, { onStart, ...options }) => {
    const child = startChild(argv, { cwd: root, ...options, env: { ...process.env, ...options.env } });
    onStart(child);
    return await child.ended;
  };
  const isWhole = jestArguments.length === 0;
  const leftOut = leftOutOf(project);
  if (isWhole) print(`only ${paths.join(", ")}: ${others}`);
  for (const { test, reason } of leftOut) print(`left out: "${test} ...": ${reason}`);
  const tally = await runJestProject(project, {
    run,
    toolchain,
    isWhole: false,
    jestArguments: ["--verbose", ...exclude(leftOut), ...(isWhole ? paths : jestArguments)],
  });
  if (isWhole && tally.skipped < leftOut.length) tally.failures.push(`${project}: what is left out is not there`);
  return tally;
}

/** @type {{ projects: readonly string[], jestArguments: readonly string[], timeoutFactor: number }} */
const request = JSON.parse(readFileSync(`${root}/vm-request.json`, "utf8"));
process.env.TURNBOX_TEST_TIMEOUT_FACTOR = String(request.timeoutFactor);
print("\n=== smoke");
const tallies = [await runSmoke()];
const suites =
  tallies[0].failures.length === 0 ? SUITES.filter(({ project }) => request.projects.includes(project)) : [];
for (const suite of suites) {
  print(`\n=== tests: ${suite.project}`);
  tallies.push(await runSuite(suite, request.jestArguments));
}
const summary = summarize(tallies, { expectsTests: request.projects.length > 0 });
for (const failure of summary.failures) print(`failed: ${failure}`);
print(`\n${summary.line}`);
process.exitCode = summary.exitCode;
