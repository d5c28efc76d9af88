import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type BenchArguments, parseArguments, USAGE, UsageError } from "./arguments.ts";
import { describeBars } from "./bar.ts";
import { CATALOG } from "./catalog.ts";
import { describeInLines, describeMachine, MissingPart, QUIET_LOAD } from "./machine.ts";
import { profileRow } from "./profile/profile-row.ts";
import { publish } from "./report/publish.ts";
import { type Results, toJson, writeResults } from "./report/results.ts";
import { formatTable } from "./report/table.ts";
import type { Row } from "./row.ts";
import { runRows } from "./run/run-rows.ts";

const ROOT = resolve(import.meta.dirname, "..");
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const EXIT = { held: 0, missed: 1, wrong: 2, interrupted: 130 } as const;

function list(rows: readonly Row[]): number {
  for (const row of rows) print(`${row.id.padEnd(24)}${describeBars(row).padEnd(28)}${row.title}`);
  return EXIT.held;
}

/** Ctrl-C ends the run after the sample under way; what was started is taken away all the same. */
function untilInterrupted(): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(name, () => {
      if (!stop.signal.aborted) print("interrupted: cleaning up");
      stop.abort(new Error("interrupted"));
    });
  return stop.signal;
}

async function measure(
  rows: readonly Row[],
  { size, jsonPath, publish: isPublished }: BenchArguments,
): Promise<number> {
  const machine = await describeMachine();
  for (const line of describeInLines(machine)) print(line);
  if (machine.loadAverage > QUIET_LOAD)
    print(
      `warning: the machine is busy (load above ${QUIET_LOAD}): ratios are rough, and bars may be missed for that alone`,
    );
  const signal = untilInterrupted();
  const measured = await runRows(rows, {
    size,
    signal,
    print,
    onResult: (result) => print(`${formatTable([result])}\n`),
  });
  const order = rows.map(({ id }) => id);
  const results: Results = {
    machine,
    size,
    rows: measured.toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id)),
  };
  if (results.rows.length > 0) {
    const directory = await writeResults(ROOT, results);
    print(`${formatTable(results.rows)}\n\nwritten to ${directory}`);
  }
  if (jsonPath !== undefined) await writeFile(jsonPath, toJson(results));
  if (signal.aborted) return EXIT.interrupted;
  if (isPublished) await publish(ROOT, results);
  const missed = results.rows.filter(({ verdict }) => verdict === "fail");
  for (const { id } of missed) print(`missed: ${id}`);
  return missed.length === 0 ? EXIT.held : EXIT.missed;
}

/** The first of the rows; the others of its group are not waited for. */
async function profile(
  [row]: readonly Row[],
  { svgPath, repository = ROOT, seconds }: NonNullable<BenchArguments["profile"]>,
): Promise<number> {
  await profileRow(row?.id ?? "", { svgPath: resolve(svgPath), repository: resolve(repository), seconds, print });
  return EXIT.held;
}

async function main(args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args);
  const { only } = parsed;
  const rows = only === undefined ? CATALOG : CATALOG.filter(({ id }) => only.test(id));
  if (rows.length === 0) throw new UsageError("--only: no row has such an id; --rows lists them");
  if (parsed.action === "help") {
    print(USAGE);
    return EXIT.held;
  }
  if (parsed.action === "list") return list(rows);
  return parsed.profile === undefined ? await measure(rows, parsed) : await profile(rows, parsed.profile);
}

try {
  // Lines to servers that have gone would keep the process.
  process.exit(await main(process.argv.slice(2)));
} catch (thrown) {
  if (!(thrown instanceof UsageError) && !(thrown instanceof MissingPart)) throw thrown;
  print(thrown instanceof UsageError ? `${thrown.message}\n${USAGE}` : thrown.message);
  process.exit(EXIT.wrong);
}
