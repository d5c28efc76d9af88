import { describe, expect, it, jest } from "@jest/globals";
import { fuzzListener } from "./fuzz-listener.suite.ts";
import { seededRandom } from "./hostile-answer.suite.ts";
import { startPortListener } from "./port-listener.ts";

jest.setTimeout(3_600_000);

const IS_FULL = process.env["TURNBOX_FULL"] === "1";
const SEED = Number(process.env["TURNBOX_SEED"] ?? 20_261_116);
/** The whole form is 100,000 answers, in parts with a seed of their own. */
const [PARTS, ANSWERS] = IS_FULL ? [10, 10_000] : [1, 2000];
const SEEDS = Array.from({ length: PARTS }, (_, part) => SEED + part);

describe("the address of a port, for any answer of a server inside", () => {
  it.each(SEEDS)(
    `gives its client one good answer, a 502 or a cut, ${String(ANSWERS)} times, by seed %d`,
    async (seed) => {
      const report = await fuzzListener({ start: startPortListener, random: seededRandom(seed), answers: ANSWERS });
      if (IS_FULL) process.stderr.write(`${JSON.stringify({ seed, ...report })}\n`);
      expect(report.wrong).toEqual([]);
      // The answers are near enough to HTTP to get through, and far enough from it not to.
      for (const kind of ["whole", "cut", "bad gateway", "left"])
        expect(report.seen[kind]).toBeGreaterThan(ANSWERS / 100);
    },
  );
});
