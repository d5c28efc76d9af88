import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { applyPatch } from "diff";
import { pathOf, compareTrees } from "./compare-trees.ts";
import { EVERYTHING } from "./scope.ts";
import { createTextDiffs, type Text, type TextLimits } from "./text-diff.ts";
import { openTree } from "./tree.ts";

const LIMITS: TextLimits = { maxBytes: 1024 ** 2, maxFiles: 100, maxFileBytes: 1024 ** 2, budgetMs: 30_000 };

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "turnbox-text-"));
  for (const side of ["from", "to"]) mkdirSync(join(directory, side));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

type Files = Readonly<Record<string, string | Uint8Array>>;

/** The texts of what differs between two sets of files, by path. */
function textsOf(
  from: Files,
  to: Files,
  { nowMs = () => performance.now(), ...limits }: Partial<TextLimits> & { readonly nowMs?: () => number } = {},
): ReadonlyMap<string, Text> {
  for (const [name, content] of Object.entries(from)) writeFileSync(join(directory, "from", name), content);
  for (const [name, content] of Object.entries(to)) writeFileSync(join(directory, "to", name), content);
  const trees = { from: openTree(join(directory, "from")), to: openTree(join(directory, "to")) };
  const differences = compareTrees(trees, {
    path: "",
    scope: EVERYTHING,
    commonUntilNs: 0n,
    maxEntries: 10_000,
    maxChanges: 10_000,
    tick: () => undefined,
  });
  const textOf = createTextDiffs(trees, { ...LIMITS, ...limits }, nowMs);
  return new Map(differences.map((difference) => [pathOf(difference), textOf(difference)]));
}

const lines = (count: number, word: string): string =>
  Array.from({ length: count }, (_, index) => `${word} ${index}\n`).join("");

describe("createTextDiffs", () => {
  it("writes what other tools read: headers, three lines of context, the end of a file without a newline", () => {
    const before = lines(20, "line");
    const after = `${before.replace("line 10\n", "changed\n")}no newline`;
    const text = textsOf({ a: before, gone: "x\n" }, { a: after, new: "y\n" });
    expect(text.get("/a")?.unifiedDiff).toBe(
      [
        "--- a/a",
        "+++ b/a",
        "@@ -8,7 +8,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+changed",
        " line 11",
        " line 12",
        " line 13",
        "@@ -18,3 +18,4 @@",
        " line 17",
        " line 18",
        " line 19",
        "+no newline",
        "\\ No newline at end of file",
        "",
      ].join("\n"),
    );
    expect(applyPatch(before, text.get("/a")?.unifiedDiff ?? "")).toBe(after);
    expect(text.get("/gone")?.unifiedDiff).toBe("--- a/gone\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n");
    expect(text.get("/new")?.unifiedDiff).toBe("--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+y\n");
  });

  it("keeps a byte order mark, carriage returns and odd letters as they are", () => {
    const before = "\u{feff}eins\r\nzwei\r\n";
    const after = "\u{feff}eins\r\n\u{1f4a9}\r\n";
    const { unifiedDiff = "" } = textsOf({ a: before }, { a: after }).get("/a") ?? {};
    expect(applyPatch(before, unifiedDiff)).toBe(after);
    expect(unifiedDiff).toContain("\u{feff}eins\r\n");
  });

  it("names what is no text, and nothing more", () => {
    const binary = { binary: true, unifiedDiff: "", diffTruncated: false };
    const late = Buffer.concat([Buffer.from(lines(2000, "text")), Buffer.from([0xc3, 0x28])]);
    const text = textsOf(
      { nul: "text\n", latin: "text\n", late: "text\n", "was-binary": new Uint8Array([0, 1]) },
      {
        nul: "a\0b",
        latin: new Uint8Array([0x61, 0xe4, 0x62]),
        late,
        "was-binary": "text\n",
        large: new Uint8Array(2 * 1024 ** 2),
      },
    );
    expect([...text.values()]).toEqual(Array.from({ length: 5 }, () => binary));
  });

  it("does not take a character that the first part cuts in two for something else", () => {
    const text = `${"x".repeat(8191)}\u{e4}\n`;
    expect(textsOf({}, { a: text }).get("/a")).toMatchObject({ binary: false, diffTruncated: false });
  });

  it("leaves out what is over a limit and says so, and goes on with what fits", () => {
    const leftOut = { binary: false, unifiedDiff: "", diffTruncated: true };
    const large = textsOf({}, { a: lines(200_000, "line"), b: "b\n" });
    expect(large.get("/a")).toEqual(leftOut);
    expect(large.get("/b")?.diffTruncated).toBe(false);
    const tight = textsOf({}, { c: lines(100, "line"), d: "d\n" }, { maxBytes: 200 });
    expect(tight.get("/c")).toEqual(leftOut);
    expect(tight.get("/d")?.unifiedDiff).toContain("+d");
    const few = textsOf({}, { e: "e\n" }, { maxFiles: 2 });
    expect([...few.values()].map(({ diffTruncated }) => diffTruncated)).toEqual([true, false, true, true, true]);
    let nowMs = 0;
    const slow = textsOf({}, {}, { nowMs: () => (nowMs += 1000), budgetMs: 3500 });
    expect([...slow.values()].at(-1)).toEqual(leftOut);
  });

  it("has no text for files that only their attributes, or their place, make different", () => {
    writeFileSync(join(directory, "from", "a"), "same\n", { mode: 0o600 });
    expect(textsOf({}, { a: "same\n" }).get("/a")).toEqual({ binary: false, unifiedDiff: "", diffTruncated: false });
  });

  it("gives up soon on two files that have nothing in common", () => {
    const shuffled = (word: string) =>
      Array.from({ length: 60_000 }, (_, index) => `${word}${(index * 7919) % 60_013}\n`).join("");
    const startedMs = performance.now();
    const text = textsOf({ a: shuffled("a") }, { a: shuffled("b") });
    expect(text.get("/a")?.diffTruncated).toBe(true);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  it("quotes names, so that no name looks like a line of the diff", () => {
    const { unifiedDiff = "" } = textsOf({}, { "x\n+++ b\n": "y\n" }).values().next().value ?? {};
    expect(unifiedDiff.split("\n").filter((line) => line.startsWith("+++"))).toHaveLength(1);
  });
});
