// Bisect over turns: which turn broke the test? Turns are tried in forks, so the sandbox itself is left as it is.
import { type Sandbox, Turnbox } from "@turnbox/client";

const TURNS = 8;
const BREAKS = 6;

using turnbox = Turnbox.connect();
await using sandbox = await turnbox.create();

// What an agent did: each turn adds a function, and one of them spoils another on the way.
await sandbox.files.write("test.sh", '. ./lib.sh\ntest "$(greet)" = hello\n');
await sandbox.files.write("lib.sh", "greet() { echo hello; }\n");
for (let number = 1; number <= TURNS; number++) {
  const spoil = number === BREAKS ? "; sed -i s/hello/hallo/ lib.sh" : "";
  await sandbox.bash(`echo "f${number}() { echo ${number}; }" >> lib.sh${spoil}`);
  await sandbox.turn();
}

async function passesAt(turn: number, of: Sandbox): Promise<boolean> {
  const [fork] = await of.fork({ from: turn });
  if (fork?.sandbox === undefined) throw fork?.error ?? new Error("no fork");
  await using probe = fork.sandbox;
  const { ok } = await probe.bash("sh test.sh");
  console.log(`turn ${turn} ${ok ? "passes" : "fails"}`);
  return ok;
}

let good = 0;
let bad = TURNS;
while (bad - good > 1) {
  const middle = Math.floor((good + bad) / 2);
  if (await passesAt(middle, sandbox)) good = middle;
  else bad = middle;
}

console.log(`turn ${bad} broke the test:`);
for (const { unifiedDiff } of await sandbox.diff({ from: bad - 1, to: bad, text: true })) console.log(unifiedDiff);
