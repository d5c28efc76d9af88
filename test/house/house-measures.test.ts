import { describe, expect, it } from "@jest/globals";
import { fileCycles, folderCycles } from "../../scripts/house/cycles.mjs";
import { foreignPrograms, languageOf } from "../../scripts/house/foreign-programs.mjs";
import { longFunctions } from "../../scripts/house/functions.mjs";
import { readTable } from "../../scripts/house/glossary.mjs";
import { protocolImports } from "../../scripts/house/protocol-imports.mjs";
import { isInName, isInText, retiredWords } from "../../scripts/house/retired-words.mjs";
import { singleUseFiles } from "../../scripts/house/single-use.mjs";
import { createSource } from "../../scripts/house/sources.mjs";
import { unnamedTests } from "../../scripts/house/test-names.mjs";
import { listLogMessages, listTestNames, wordsOf } from "../../scripts/house/words.mjs";

interface Finding {
  readonly at: string;
  readonly what: string;
}

/** What a measure finds in files that are given by name and text. */
function find(measure: (sources: unknown) => unknown, files: Readonly<Record<string, string>>): readonly Finding[] {
  const sources: unknown[] = Object.entries(files).map(([file, text]) => createSource(file, text) as unknown);
  return measure(sources) as readonly Finding[];
}
const placesOf = (findings: readonly Finding[]): readonly string[] => findings.map(({ at }) => at).toSorted();

const HOST = "packages/host/src";

describe("folders in a cycle", () => {
  it("are rooms that import each other, also by types, by import() and around a third", () => {
    const found = find(folderCycles, {
      [`${HOST}/a/a.ts`]: 'import { b } from "../b/b.ts"; export const a = b;',
      [`${HOST}/b/b.ts`]: 'export type { C } from "../c/deep/c.ts"; export const b = 1;',
      [`${HOST}/c/deep/c.ts`]: 'export type C = typeof import("../../a/a.ts");',
      [`${HOST}/d/d.ts`]: 'import "../a/a.ts";',
    });
    expect(placesOf(found)).toEqual([`${HOST}/a`, `${HOST}/b`, `${HOST}/c`]);
  });

  it("are found below a room", () => {
    const found = find(folderCycles, {
      [`${HOST}/a/x/x.ts`]: 'import "../y/y.ts";',
      [`${HOST}/a/y/y.ts`]: 'await import("../x/x.ts");',
    });
    expect(placesOf(found)).toEqual([`${HOST}/a/x`, `${HOST}/a/y`]);
  });

  it("are not a folder and one below it, nor what only tests import", () => {
    const found = find(folderCycles, {
      [`${HOST}/a/a.ts`]: 'import "./below/x.ts";',
      [`${HOST}/a/below/x.ts`]: 'import "../a.ts"; import "../../b/b.ts";',
      [`${HOST}/b/b.test.ts`]: 'import "../a/a.ts";',
      [`${HOST}/b/fake/fake.ts`]: 'import "../../a/a.ts";',
      [`${HOST}/b/b.ts`]: 'import { a } from "@turnbox/a";',
    });
    expect(found).toEqual([]);
  });
});

describe("files in a cycle", () => {
  it("import each other, also by types alone", () => {
    const found = find(fileCycles, {
      [`${HOST}/a.ts`]: 'import type { B } from "./b.ts"; export type A = B;',
      [`${HOST}/b.ts`]: 'import type { A } from "./a.ts"; export type B = A;',
      [`${HOST}/c.ts`]: 'import "./a.ts";',
    });
    expect(placesOf(found)).toEqual([`${HOST}/a.ts`, `${HOST}/b.ts`]);
  });
});

describe("tests named after no file", () => {
  it("are those of the packages without a file of the same name beside them", () => {
    const found = find(unnamedTests, {
      [`${HOST}/a/verbs.test.ts`]: "",
      [`${HOST}/a/store.faults.contract.test.ts`]: "",
      [`${HOST}/b/store.ts`]: "",
      [`${HOST}/a/only.test.ts`]: "",
      [`${HOST}/a/only.suite.ts`]: "",
    });
    expect(found).toEqual([
      { at: `${HOST}/a/verbs.test.ts`, what: "there is no verbs.ts beside it" },
      { at: `${HOST}/a/store.faults.contract.test.ts`, what: "there is no store.ts beside it" },
      { at: `${HOST}/a/only.test.ts`, what: "there is no only.ts beside it" },
    ]);
  });

  it("are not those with an aspect after the name, those of fakes or those outside of the packages", () => {
    const files = ["a/store.ts", "a/store.test.ts", "a/store.faults.contract.test.ts", "fake/f.ts", "fake/f.test.ts"];
    const named = Object.fromEntries(files.map((file) => [`${HOST}/${file}`, ""]));
    expect(find(unnamedTests, { ...named, "test/e2e/journey.test.ts": "" })).toEqual([]);
  });
});

describe("long functions", () => {
  const withLines = (count: number): string => "\n".repeat(count - 1);
  const longerThanFive = (sources: unknown): unknown => longFunctions(sources, 5);

  it("are those with more lines than the limit, of each kind", () => {
    const text = `export function first() {${withLines(6)}}
const second = () => {${withLines(6)}};
class Third { third() {${withLines(6)}} constructor() {${withLines(6)}} }`;
    const found = find(longerThanFive, { [`${HOST}/a.ts`]: text });
    expect(found.map(({ what }) => what)).toEqual([
      "first: 6 lines",
      "second: 6 lines",
      "third: 6 lines",
      "constructor: 6 lines",
    ]);
    expect(found[1]?.at).toBe(`${HOST}/a.ts:7`);
  });

  it("are not functions of the limit, long classes or tests", () => {
    const long = `export function long() {${withLines(9)}}`;
    const found = find(longerThanFive, {
      [`${HOST}/a.ts`]: `function first() {${withLines(5)}}\nclass Long {${withLines(9)}}`,
      [`${HOST}/a.test.ts`]: long,
      [`${HOST}/a.suite.ts`]: long,
      [`${HOST}/fake/a.ts`]: long,
    });
    expect(found).toEqual([]);
  });
});

describe("imports of the protocol beside the library", () => {
  const proto = 'import type { Session } from "@turnbox/protocol/turnbox/host/v1/session_pb.js";';

  it("are those of the command line and the agents, as packages and as rooms of the client", () => {
    const files = ["cli/src/verb/a.ts", "agents/src/a.ts", "client/src/cli/a.ts", "client/src/provider/deep/a.ts"];
    const named = files.map((file) => `packages/${file}`);
    expect(placesOf(find(protocolImports, Object.fromEntries(named.map((file) => [file, proto]))))).toEqual(
      named.toSorted(),
    );
  });

  it("are not those of the library, of servers or of tests", () => {
    const files = ["client/src/sandbox/a.ts", "orchestrator/src/rpc/a.ts", "cli/src/a.test.ts", "agents/src/fake/a.ts"];
    expect(find(protocolImports, Object.fromEntries(files.map((file) => [`packages/${file}`, proto])))).toEqual([]);
    expect(find(protocolImports, { "packages/cli/src/a.ts": 'import { Turnbox } from "@turnbox/client";' })).toEqual(
      [],
    );
  });
});

describe("programs inside strings", () => {
  const inFile = (text: string): readonly Finding[] => find(foreignPrograms, { [`${HOST}/a.ts`]: text });

  it("are of Perl in any length", () => {
    expect(inFile("const RUN = 'syscall(308, 0); exec @ARGV';")).toMatchObject([{ at: `${HOST}/a.ts:1` }]);
    expect(inFile("const RUN = `use strict;\nmy $a = ${1};`;")).toMatchObject([{ what: "Perl, 2 lines" }]);
  });

  it("are of a shell, awk or Python from five lines on, also as joined lines", () => {
    const shell = 'if [ -n "$1" ]; then\n  echo a\n  echo b\n  echo c\nfi';
    expect(languageOf(shell)).toBe("shell");
    expect(languageOf("BEGIN { a = 1 }\n/x/ { b = 2 }\n{ next }\n{ c = $0 }\nEND { printf a }")).toBe("awk");
    expect(languageOf("import os\nimport sys\ndef main(a):\n  print(a)\nmain(1)")).toBe("Python");
    expect(inFile(`const RUN = String.raw\`${shell}\`;`)).toHaveLength(1);
    const lines = shell.split("\n").map((line) => JSON.stringify(line));
    expect(inFile(`const RUN = [${lines.join(", ")}].join("\\n");`)).toHaveLength(1);
  });

  it("are not commands, messages or queries", () => {
    expect(languageOf('for a in 1 2; do echo "$a"; done')).toBeUndefined();
    expect(languageOf("usage: a\n  run it once\n  or twice\n  for each\n  of them\n")).toBeUndefined();
    expect(languageOf("SELECT a\nFROM b\nWHERE c = $1\nAND d = 2\nORDER BY a")).toBeUndefined();
    expect(find(foreignPrograms, { [`${HOST}/a.test.ts`]: "const RUN = 'my $a = 1';" })).toEqual([]);
  });
});

describe("small files for one neighbour", () => {
  const long = "\n".repeat(41);

  it("have one importer, in their folder, beside tests", () => {
    const found = find(singleUseFiles, {
      [`${HOST}/a/small.ts`]: "export const a = 1;\n",
      [`${HOST}/a/user.ts`]: `import { a } from "./small.ts";${long}`,
      [`${HOST}/a/small.test.ts`]: 'import { a } from "./small.ts";',
    });
    expect(found).toEqual([{ at: `${HOST}/a/small.ts`, what: "1 lines, for user.ts" }]);
  });

  it("are not long, of several, of another folder or of a barrel", () => {
    const found = find(singleUseFiles, {
      [`${HOST}/a/long.ts`]: long,
      [`${HOST}/a/shared.ts`]: "",
      [`${HOST}/a/far.ts`]: "",
      [`${HOST}/a/exported.ts`]: "",
      [`${HOST}/a/user.ts`]: `import "./long.ts"; import "./shared.ts";${long}`,
      [`${HOST}/b/user.ts`]: `import "../a/shared.ts"; import "../a/far.ts";${long}`,
      [`${HOST}/a/index.ts`]: 'export * from "./exported.ts";',
    });
    expect(found).toEqual([]);
  });
});

describe("log messages", () => {
  const inFile = (text: string): unknown => listLogMessages([createSource(`${HOST}/a.ts`, text)] as unknown);

  it("are constants, or have no text", () => {
    expect(
      inFile('log.info("serves"); this.#log.warn({ id }, "is gone"); deps.logger.error({ id }, `a ${id}`);'),
    ).toEqual([
      { at: `${HOST}/a.ts:1`, text: "serves", source: '"serves"' },
      { at: `${HOST}/a.ts:1`, text: "is gone", source: '"is gone"' },
      { at: `${HOST}/a.ts:1`, text: undefined, source: "`a ${id}`" },
    ]);
  });

  it("are not what others print", () => {
    expect(inFile('console.log("a"); output.info("b"); log.child({ a: 1 }); Math.log(2);')).toEqual([]);
  });
});

describe("names of tests", () => {
  it("are those of groups and tests, in each form", () => {
    const text =
      'describe("a", () => { it.each([1])("b %s", f); it(`c ${d}`, f); test.each`x`("e", f); });\nother("f");';
    const found = listTestNames([createSource("test/house/a.test.ts", text)] as unknown) as readonly {
      readonly text: string;
    }[];
    expect(found.map((one) => one.text)).toEqual(["a", "b %s", "c ${d}", "e"]);
  });
});

describe("retired words", () => {
  const line = { word: "http2 line", where: ["names"], instead: "connection", except: ["theHttp2Line"] };
  const anew = { word: "anew", where: ["names", "texts"], instead: "again", except: [] };

  it("are found among the words of names, of one and of several", () => {
    expect(wordsOf("#createHTTP2Lines_NOW")).toEqual(["create", "http2", "lines", "now"]);
    expect(["Http2Line", "createHttp2Lines", "http2-lines"].filter((name) => isInName(name, line))).toHaveLength(3);
    expect(["http2Outline", "lineOfHttp2", "line", "theHttp2Line"].filter((name) => isInName(name, line))).toEqual([]);
    expect(["begins anew", "Anew: a", "renewed", "a new one"].map((text) => isInText(text, anew))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("are counted in names and folders of the product, in log messages and in names of tests", () => {
    const found = find((sources) => retiredWords(sources, [line, anew]), {
      [`${HOST}/anew/http2-line.ts`]: 'export const startAnew = 1; log.info("anew"); const text = "anew";',
      [`${HOST}/anew/a.test.ts`]: 'const anew = 1; it("begins anew", f);',
    });
    expect(placesOf(found)).toEqual([
      `${HOST}/anew`,
      `${HOST}/anew/a.test.ts:1`,
      `${HOST}/anew/http2-line.ts`,
      `${HOST}/anew/http2-line.ts:1`,
      `${HOST}/anew/http2-line.ts:1`,
    ]);
  });

  it("are read from the table of the glossary", () => {
    const text =
      "# A\n\n## Things\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n## Retired\n\ntext\n\n| a | b |\n| - | - |\n| 3 |  |\n| 4 | 5 |\n";
    expect(readTable(text, "Retired")).toEqual([
      ["3", ""],
      ["4", "5"],
    ]);
  });
});
