import { describe, expect, it, jest } from "@jest/globals";
import { fuzzListener } from "./fuzz-listener.suite.ts";
import { seededRandom } from "./hostile-answer.suite.ts";
import { startPortListener } from "./port-listener.ts";

jest.setTimeout(3_600_000);

const IS_FULL = process.env["TURNBOX_FULL"] === "1";
const ANSWERS = IS_FULL ? 100_000 : 2000;
const SEED = Number(process.env["TURNBOX_SEED"] ?? 20_261_116);

describe("the address of a port, whatever a server inside answers", () => {
  it("gives its client one good answer, a 502 or a cut, and goes on", async () => {
    const report = await fuzzListener({ start: startPortListener, random: seededRandom(SEED), answers: ANSWERS });
    if (IS_FULL) process.stderr.write(`${JSON.stringify(report)}\n`);
    expect(report.wrong).toEqual([]);
    // The answers are near enough to HTTP to get through, and far enough from it not to.
    for (const kind of ["whole", "cut", "bad gateway", "left"])
      expect(report.seen[kind]).toBeGreaterThan(ANSWERS / 100);
  });
});
