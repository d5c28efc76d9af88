import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { readTable } from "../../scripts/house/glossary.mjs";
import { readSources } from "../../scripts/house/sources.mjs";
import { listTestNames } from "../../scripts/house/words.mjs";

const root = path.resolve(import.meta.dirname, "../..");

/** What a name of a test refers to: `D7`, `F12`, `attack 3`, `fault 4`; lists and ranges are taken apart. */
function factsIn(name: string): readonly string[] {
  const numbered = [...name.matchAll(/\b(attack|fault)s? (\d+(?:(?:, (?:and )?| and | to |-)\d+)*)/gi)];
  const listed = numbered.flatMap(([, kind = "", list = ""]) =>
    list.split(/, (?:and )?| and /).flatMap((range) => {
      const [from = 0, to = from] = range.split(/ to |-/).map(Number);
      return Array.from({ length: to - from + 1 }, (_, index) => `${kind.toLowerCase()} ${from + index}`);
    }),
  );
  return [...listed, ...(name.match(/\b[DF]\d+\b/g) ?? [])];
}

const firstCells = (file: string, heading: string): readonly string[] => {
  const text = readFileSync(path.join(root, file), "utf8");
  return (readTable(text, heading) as readonly (readonly string[])[]).map(([first = ""]) => first);
};
const findings = (): readonly string[] =>
  readFileSync(path.join(root, "docs/SECURITY-FINDINGS.md"), "utf8").match(/^\| F\d+(?= *\|)/gm) ?? [];

const KNOWN = new Set([
  ...firstCells("docs/DEFECTS.md", "Defects"),
  ...firstCells("docs/DEFECTS.md", "Attacks").map((number) => `attack ${number}`),
  ...firstCells("docs/DEFECTS.md", "Faults").map((number) => `fault ${number}`),
  ...findings().map((row) => row.slice(2)),
]);

describe("what the names of tests refer to", () => {
  it("is in the tables of docs/DEFECTS.md and docs/SECURITY-FINDINGS.md", () => {
    const names = listTestNames(readSources(root)) as readonly { readonly at: string; readonly text: string }[];
    const unknown = names.flatMap(({ at, text }) =>
      factsIn(text)
        .filter((fact) => !KNOWN.has(fact))
        .map((fact) => `${at}: ${fact}`),
    );
    expect(unknown).toEqual([]);
  }, 60_000);

  it("is read from single names, lists and ranges", () => {
    expect(factsIn("keeps it (D12), attacks 2, 4 and 6 to 8")).toEqual([
      "attack 2",
      "attack 4",
      "attack 6",
      "attack 7",
      "attack 8",
      "D12",
    ]);
    expect(factsIn("fault 34: F4 ends (attack 1)")).toEqual(["fault 34", "attack 1", "F4"]);
    expect(factsIn("the default 3 of attacks and F, in 10 D")).toEqual([]);
  });

  it("is complete: 40 defects, 68 attacks, 48 faults", () => {
    const known = (pattern: RegExp): number => [...KNOWN].filter((fact) => pattern.test(fact)).length;
    expect([known(/^D\d+$/), known(/^attack \d+$/), known(/^fault \d+$/)]).toEqual([40, 68, 48]);
  });
});
