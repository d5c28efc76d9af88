import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describeInLines, type Machine } from "../machine.ts";
import type { RowResult } from "../run/row-result.ts";
import { plot } from "./plot.ts";
import { formatTable } from "./table.ts";

/** All that one run has shown. */
export interface Results {
  readonly machine: Machine;
  readonly size: "full" | "quick";
  readonly rows: readonly RowResult[];
}

/** Writes JSON, table and plot of a run; answers with the directory. */
export async function writeResults(root: string, results: Results): Promise<string> {
  const directory = join(root, "bench/results");
  await mkdir(directory, { recursive: true });
  const table = [...describeInLines(results.machine), "", formatTable(results.rows), ""].join("\n");
  await writeFile(join(directory, "results.json"), toJson(results));
  await writeFile(join(directory, "results.txt"), table);
  await writeFile(join(directory, "results.svg"), plot(results.rows));
  return directory;
}

export const toJson = (results: Results): string => `${JSON.stringify(results, null, 2)}\n`;
