import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** What does not wait for the machine's storage and containers takes what the others leave of the processor. */
const BESIDE = ["nice", "-n", "5"];

/**
 * Runs lists of steps at the same time. `shared` is one list from which `width` lanes take the next step whenever they are free;
 * `beside` is a lane of its own, with what the others leave of the processor. What the first lane prints is seen at once, what the others
 * print when their step has ended. A step is `{ title, work }`, and `work` gets the descriptor `output` to print to, and what stands
 * `before` its commands. Returns all tallies, in the order in which the steps ended.
 */
export async function runInLanes({ shared, beside, width }, { print }) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-lanes-"));
  const waiting = [...shared];
  const tallies = [];
  const total = shared.length + beside.length;
  let begun = 0;
  const announce = ({ title }) => {
    begun += 1;
    print(`\n=== ${begun}/${total} ${title}`);
  };
  const run = async (step, options) => {
    announce(step);
    tallies.push(...[await step.work(options)].flat());
  };
  const runKept = async (step, options) => {
    const file = path.join(folder, `${begun}`);
    const output = openSync(file, "w");
    try {
      await run(step, { ...options, output });
    } finally {
      closeSync(output);
      print(`\n--- ended: ${step.title}\n${readFileSync(file, "utf8")}--- end of ${step.title}`);
    }
  };
  const takeShared = async (runStep) => {
    for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) await runStep(step, { before: [] });
  };
  const runBeside = async () => {
    for (const step of beside) await runKept(step, { before: BESIDE });
  };
  try {
    const runFirst = takeShared(run);
    const others = Array.from({ length: width - 1 }, () => takeShared(runKept));
    await Promise.all([runFirst, ...others, runBeside()]);
    return tallies;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
