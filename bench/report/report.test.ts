import { describe, expect, it } from "@jest/globals";
import { type Row, Skipped } from "../row.ts";
import { toFailed, toResult, toSkipped } from "../run/row-result.ts";
import { plot } from "./plot.ts";
import { BEGIN, END, putBetweenMarks } from "./publish.ts";
import { formatMarkdown, formatTable } from "./table.ts";

const row = (more: Partial<Row> = {}): Row => ({
  id: "exec.some",
  title: "some <command>",
  unit: "ms",
  server: "none",
  floor: "a bare one",
  bar: { kind: "at_most_ratio", value: 0.5 },
  measure: () => Promise.reject(new Skipped("never")),
  ...more,
});
const held = toResult(row(), { ours: [1, 2, 3], floor: [10, 20, 30], notes: ["a note"] });
const grown = toResult(
  {
    id: "growth.some",
    title: "n",
    unit: "ms",
    server: "none",
    growth: { of: "whole", things: "files" },
    measure: row().measure,
  },
  { ours: [100], points: [10, 100, 1000].map((x) => ({ x, y: x * x })) },
);

describe("the result of a row", () => {
  it("is judged by its bar, and fails with what went wrong besides", () => {
    expect(held).toMatchObject({ verdict: "pass", ratio: 0.1, bar: "<= 0.5 x" });
    expect(toResult(row(), { ours: [20], floor: [20] }).verdict).toBe("fail");
    expect(toResult(row(), { ours: [1], floor: [20], failures: ["a mount is left"] }).verdict).toBe("fail");
    expect(toFailed(row(), new Error("no pool")).failures).toEqual(["it could not be measured: no pool"]);
    expect(toSkipped(row(), "not installed").verdict).toBe("skipped");
  });

  it("passes a rule in words only where it could be judged", () => {
    const { bar: _bar, ...without } = row({ rule: "nothing left" });
    expect(toResult(without, { ours: [1] }).verdict).toBe("pass");
    expect(toResult(without, { ours: [1], failures: ["a mount is left"] }).verdict).toBe("fail");
    const cut = toResult(without, { ours: [1], unjudged: "too few" });
    expect(cut).toMatchObject({ verdict: "none", notes: ["too few"] });
  });

  it("fails where it grows faster than n log n", () => {
    expect(grown).toMatchObject({ verdict: "fail", bar: "n log n" });
    expect(grown.growth?.exponent).toBeCloseTo(2);
  });
});

describe("the table", () => {
  it("shows all percentiles of both sides, the ratio, the bar and the verdict", () => {
    const [heading, line] = formatTable([held]).split("\n");
    expect(heading).toMatch(/row +unit +n +p50 +p95 +p99 +floor p50 +p95 +p99 +ratio +bar/);
    expect(line).toMatch(/exec\.some +ms +3 +2\.00 +3\.00 +3\.00 +20\.0 +30\.0 +30\.0 +0\.100 +<= 0\.5 x +pass/);
  });

  it("tells below it what there is to say", () => {
    const text = formatTable([held, grown, toSkipped(row({ id: "peer.x" }), "podman is not installed")]);
    expect(text).toContain("exec.some: a note");
    expect(text).toContain("growth.some: FAIL: it grows like n^2.00");
    expect(text).toContain("peer.x: podman is not installed");
  });

  it("replaces what the document has between its marks, and nothing else", () => {
    const document = `before\n${BEGIN}\nold\n${END}\nafter\n`;
    const filled = putBetweenMarks(document, formatMarkdown([held]));
    expect(filled).toMatch(/^before\n/);
    expect(filled).toMatch(/\nafter\n$/);
    expect(filled).not.toContain("old");
    expect(putBetweenMarks(filled, "x")).toBe(putBetweenMarks(document, "x"));
    expect(() => putBetweenMarks("no marks", "x")).toThrow("no marks");
  });
});

describe("the plot", () => {
  it("has a bar for each ratio and a panel for each growth, and is well-formed", () => {
    const picture = plot([held, grown]);
    expect(picture).toContain(">exec.some</text>");
    expect(picture).toContain("growth.some: total n^2.00");
    expect(picture).not.toMatch(/NaN|undefined|Infinity/);
    expect([...picture.matchAll(/<(text|svg|style)\b/g)].length).toBe(
      [...picture.matchAll(/<\/(text|svg|style)>/g)].length,
    );
  });
});
