import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { judge, lower } from "./limits.mjs";
import { countAll, measureAll } from "./measures.mjs";

const USAGE = `usage: npm run house [-- [--list [PART-OF-A-NAME]] [--lower]]
  --list   what was found, of all measures or of those whose name holds the given words
  --lower  writes lower limits into test/house/limits.json; none is ever raised
`;

const LIMITS = path.join(root, "test/house/limits.json");

function printMeasures(counts, limits) {
  for (const [name, count] of Object.entries(counts)) {
    const parts =
      typeof count === "number"
        ? ""
        : ` (${Object.entries(count)
            .map(([group, part]) => `${group} ${part}`)
            .join(", ")})`;
    const total = (value) =>
      typeof value === "number" ? value : Object.values(value ?? {}).reduce((sum, part) => sum + part, 0);
    process.stdout.write(`${name}: ${total(count)}${parts}, limit ${total(limits[name] ?? 0)}\n`);
  }
}

function printFindings(measured, part) {
  for (const [name, findings] of Object.entries(measured).filter(([name]) => name.includes(part))) {
    process.stdout.write(`\n${name}: ${findings.length}\n`);
    for (const { at, what } of findings) process.stdout.write(`  ${at}  ${what}\n`);
  }
}

function run([option, part = ""]) {
  if (![undefined, "--list", "--lower"].includes(option)) {
    process.stdout.write(USAGE);
    return 2;
  }
  const measured = measureAll(root);
  const counts = countAll(measured);
  const limits = JSON.parse(readFileSync(LIMITS, "utf8"));
  const wanted = option === "--lower" ? lower(counts, limits) : limits;
  if (option === "--lower") writeFileSync(LIMITS, `${JSON.stringify(wanted, null, 2)}\n`);
  printMeasures(counts, wanted);
  if (option === "--list") printFindings(measured, part);
  const wrong = judge(counts, wanted);
  for (const line of wrong) process.stdout.write(`wrong: ${line}\n`);
  return wrong.length === 0 ? 0 : 1;
}

process.exitCode = run(process.argv.slice(2));
