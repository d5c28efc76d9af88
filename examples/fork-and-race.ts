// Fork and race: every candidate fix of a bug is tried in a fork of its own, and the tests pick the winner.
import { type Sandbox, Turnbox } from "@turnbox/client";

const BUGGY = "[ $(($1 % 4)) = 0 ]\n";
const TESTS = "sh leap.sh 2024 && sh leap.sh 2000 && ! sh leap.sh 1900 && ! sh leap.sh 2023\n";
const CANDIDATES = [
  "[ $(($1 % 4)) = 0 ] && [ $(($1 % 100)) != 0 ]\n",
  "[ $(($1 % 400)) = 0 ]\n",
  "[ $(($1 % 400)) = 0 ] || { [ $(($1 % 4)) = 0 ] && [ $(($1 % 100)) != 0 ]; }\n",
];

using turnbox = Turnbox.connect();
await using project = await turnbox.create({ labels: { example: "fork-and-race" } });
await project.files.write("leap.sh", BUGGY);
await project.files.write("test.sh", TESTS);
console.log(`the tests ${(await project.bash("sh test.sh")).ok ? "pass" : "fail"}`);

// One snapshot of the project, and as many sandboxes on it as there are candidates.
await using ring = new AsyncDisposableStack();
const forks = await project.fork({ count: CANDIDATES.length });
const racers = forks.flatMap(({ sandbox }) => (sandbox === undefined ? [] : [ring.use(sandbox)]));

async function race(racer: Sandbox, fix: string): Promise<Sandbox> {
  await racer.turn();
  await racer.files.write("leap.sh", fix);
  const { ok } = await racer.bash("sh test.sh");
  if (!ok) throw new Error(`the tests fail with ${fix}`);
  return racer;
}

// The first whose tests pass goes on; the others are destroyed, those that are still running too.
const winner = await Promise.any(racers.map((racer, index) => race(racer, CANDIDATES[index] ?? BUGGY)));
await Promise.all(racers.filter((racer) => racer !== winner).map((racer) => racer.destroy()));
console.log(`candidate ${racers.indexOf(winner) + 1} of ${racers.length} wins`);

const { sandboxes } = await turnbox.list({ labels: { example: "fork-and-race" } });
const left = sandboxes.filter(({ state }) => state === "active");
console.log(`sandboxes left: ${left.length}, the project and the winner`);
for (const { path, unifiedDiff } of await winner.diff({ from: 1, text: true }))
  console.log(`${path}\n${unifiedDiff ?? ""}`);
