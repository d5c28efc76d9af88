import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describeInLines } from "../machine.ts";
import type { Results } from "./results.ts";
import { plot } from "./plot.ts";
import { formatMarkdown } from "./table.ts";

export const BEGIN = "<!-- bench:begin, written by `npm run bench -- --publish` -->";
export const END = "<!-- bench:end -->";

/** The document with the text between its marks replaced. */
export function putBetweenMarks(document: string, content: string): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error("the document has no marks for the results");
  return `${document.slice(0, begin + BEGIN.length)}\n\n${content.trim()}\n\n${document.slice(end)}`;
}

/** Writes the results into the documents. */
export async function publish(root: string, { machine, size, rows }: Results): Promise<void> {
  const head = [...describeInLines(machine), ...(size === "quick" ? ["a quick run: its figures say nothing"] : [])];
  const document = join(root, "docs/PERFORMANCE.md");
  const content = `${head.map((line) => `- ${line}`).join("\n")}\n\n${formatMarkdown(rows)}\n\n![Ratios and growth](img/bench.svg)`;
  await writeFile(document, putBetweenMarks(await readFile(document, "utf8"), content));
  const picture = join(root, "docs/img/bench.svg");
  await mkdir(dirname(picture), { recursive: true });
  await writeFile(picture, plot(rows));
}
