import { existsSync } from "node:fs";
import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";
import { runJestProject } from "./check/jest.mjs";
import { summarize } from "./check/tally.mjs";

const [name, ...rest] = process.argv.slice(2);

const refuse = (message) => {
  process.stdout.write(`${message}\n`);
  process.exit(2);
};

/** The fuzzer alone takes hours in its whole form. */
const FULL_TIMEOUT_MS = 24 * 3_600_000;

/** Jest projects at full length: `TURNBOX_FULL=1` lifts the limits that keep `npm test` short. */
const runFull =
  (...projects) =>
  async (context) => {
    const tallies = [];
    for (const project of projects) {
      const more = { env: { TURNBOX_FULL: "1" }, isWhole: rest.length === 0, timeoutMs: FULL_TIMEOUT_MS };
      const options = { ...context, jestArguments: rest, ...more };
      tallies.push(await runJestProject(project, options));
    }
    const summary = summarize(tallies, { expectsTests: true });
    for (const failure of summary.failures) context.print(`failed: ${failure}`);
    context.print(`\n${summary.line}`);
    return summary.exitCode;
  };

const bench = path.join(root, "bench/main.ts");

const SCRIPTS = {
  attacks: runFull("attacks"),
  soak: runFull("faults", "soak"),
  bench: async ({ run, toolchain }) => exitCodeOf(await run([toolchain.node(), bench, ...rest])),
};

if (!Object.hasOwn(SCRIPTS, name ?? "")) refuse(`usage: node scripts/run.mjs ${Object.keys(SCRIPTS).join("|")}`);
if (name === "bench" && !existsSync(bench)) refuse("there is no benchmark harness yet: bench/main.ts does not exist");

await main(SCRIPTS[name]);
