import { writeSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { runInLanes } from "../../scripts/check/lanes.mjs";

interface Options {
  readonly output?: number;
  readonly before: readonly string[];
}
interface Step {
  readonly title: string;
  readonly work: (options: Options) => Promise<string>;
}

/** Steps that end when the test says so. */
function createSteps() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const step = (title: string): Step => ({
    title,
    work: async ({ output }) => {
      begun.push(title);
      await new Promise<void>((resolve) => ends.set(title, resolve));
      if (output !== undefined) writeSync(output, `output of ${title}\n`);
      return `tally of ${title}`;
    },
  });
  const end = async (title: string): Promise<void> => {
    ends.get(title)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { begun, step, end };
}

describe("runInLanes", () => {
  it("takes shared steps in order as lanes become free, and the others one after another beside them", async () => {
    const { begun, step, end } = createSteps();
    const lanes = { shared: ["a", "b", "c"].map(step), beside: ["x", "y"].map(step), width: 2 };
    const tallies = runInLanes(lanes, { print: () => undefined });
    expect(begun).toEqual(["a", "b", "x"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "x", "c"]);
    await end("x");
    expect(begun.at(-1)).toBe("y");
    for (const title of ["a", "c", "y"]) await end(title);
    expect(await tallies).toEqual(["b", "x", "a", "c", "y"].map((title) => `tally of ${title}`));
  });

  it("prints what other lanes than the first have printed when their step has ended", async () => {
    const { step, end } = createSteps();
    const lines: string[] = [];
    const lanes = { shared: ["a", "b"].map(step), beside: [step("x")], width: 2 };
    const tallies = runInLanes(lanes, { print: (line: string) => lines.push(line) });
    for (const title of ["x", "b", "a"]) await end(title);
    await tallies;
    const text = lines.join("\n");
    expect(text).toContain("=== 1/3 a");
    expect(text.indexOf("output of x")).toBeLessThan(text.indexOf("output of b"));
    expect(text).not.toContain("output of a");
  });

  it("gives the steps beside a lower priority than the shared ones", async () => {
    const before: (readonly string[])[] = [];
    const step = (title: string): Step => ({
      title,
      work: async (options) => {
        before.push(options.before);
        return title;
      },
    });
    await runInLanes({ shared: [step("a")], beside: [step("x")], width: 1 }, { print: () => undefined });
    expect(before).toEqual([[], ["nice", "-n", expect.any(String)]]);
  });
});
