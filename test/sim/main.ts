import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { parseSimArguments, type SimArguments } from "./arguments.ts";
import { measurePlacement } from "./placement-scale.ts";
import { type Outcome, simulate } from "./simulate.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const EVERY_LINE = 1_000_000;
const PROGRESS_MS = 10_000;
/** What a create may take to be placed. */
const PLACEMENT_MS = 1;

function show({ seed, failure, lastEvents, virtualMs, digest }: Outcome): void {
  for (const line of lastEvents) print(line);
  print(`seed ${String(seed)}: ${failure ?? "good"} (${(virtualMs / 60_000).toFixed(1)} virtual minutes, ${digest})`);
  if (failure !== undefined) print(`replay it: npm run sim -- --seed ${String(seed)}\n`);
}

async function replay(seed: number): Promise<number> {
  const outcome = await simulate(seed, { keepLines: EVERY_LINE });
  show(outcome);
  return outcome.failure === undefined ? 0 : 1;
}

async function runMany({ first, count, workers }: SimArguments): Promise<number> {
  const startedMs = performance.now();
  const outcomes: Outcome[] = [];
  const failures: Outcome[] = [];
  let next = first;
  let shownMs = startedMs;
  const progress = (): string =>
    `${String(outcomes.length)} of ${String(count)} seeds, ${String(failures.length)} failed, ` +
    `${(outcomes.reduce((sum, { virtualMs }) => sum + virtualMs, 0) / 3_600_000).toFixed(0)} virtual hours ` +
    `in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`;
  const take = (outcome: Outcome): void => {
    outcomes.push(outcome);
    if (outcome.failure !== undefined) {
      failures.push(outcome);
      show(outcome);
    }
    if (performance.now() - shownMs < PROGRESS_MS) return;
    shownMs = performance.now();
    print(progress());
  };
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url));
      let seed = -1;
      const goOn = (): void => {
        if (next >= first + count) {
          void worker.terminate().then(() => {
            resolve();
          });
          return;
        }
        seed = next++;
        worker.postMessage(seed);
      };
      worker.on("message", (outcome: Outcome) => {
        take(outcome);
        goOn();
      });
      worker.on("error", (error) => {
        print(`seed ${String(seed)} ends the simulator; replay it: npm run sim -- --seed ${String(seed)}`);
        reject(new Error("a worker ended", { cause: error }));
      });
      goOn();
    });
  await Promise.all(Array.from({ length: Math.min(workers, count) }, work));
  print(progress());
  const { medianMs, p99Ms } = await measurePlacement({ instances: 10_000, sandboxesPerInstance: 100, creates: 500 });
  print(
    `placement among 10,000 instances with 1,000,000 sandboxes: median ${medianMs.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
  );
  if (medianMs >= PLACEMENT_MS) print(`too slow: a placement must take less than ${String(PLACEMENT_MS)} ms`);
  if (failures.length === 0) return medianMs < PLACEMENT_MS ? 0 : 1;
  print(`failed: ${failures.map(({ seed, failure }) => `${String(seed)} (${failure ?? ""})`).join("\n        ")}`);
  return 1;
}

const options = parseSimArguments(process.argv.slice(2), { workers: availableParallelism() });
process.exitCode = options.isReplay ? await replay(options.first) : await runMany(options);
