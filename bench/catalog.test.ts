import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { describeBars } from "./bar.ts";
import { CATALOG } from "./catalog.ts";
import { BEGIN, END } from "./report/publish.ts";

const document = readFileSync(resolve(import.meta.dirname, "../docs/PERFORMANCE.md"), "utf8");

/** The line of the document's own table about a row. */
const lineOf = (id: string): string =>
  document.split("\n").find((line) => line.split("|")[1]?.trim() === `\`${id}\``) ?? "";

describe("the rows of the benchmark", () => {
  it("have ids of their own", () => {
    const ids = CATALOG.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("have a floor wherever their bar is a ratio", () => {
    const without = CATALOG.filter(
      ({ bar, floor }) => bar !== undefined && bar.kind !== "below" && floor === undefined,
    );
    expect(without).toEqual([]);
  });

  it.each(CATALOG.map((row) => [row.id, describeBars(row)] as const))(
    "are explained in the documents with their bars: %s",
    (id, bars) => {
      expect(lineOf(id)).not.toBe("");
      expect(lineOf(id).split("|").at(-2)?.trim()).toBe(bars);
    },
  );

  it("have a place in the documents for what was measured", () => {
    expect(document.indexOf(BEGIN)).toBeGreaterThan(0);
    expect(document.indexOf(END)).toBeGreaterThan(document.indexOf(BEGIN));
  });
});
