import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { REPO } from "../support/process.ts";

/** What hostile code, files and networks try, by number. */
const ATTACKS = Array.from({ length: 48 }, (_, index) => index + 1);

/** The names of the tests of whole hosts: what stands between the quotes after `it(` and its like. */
const NAMES: readonly string[] = readdirSync(join(REPO, "test/attacks"))
  .filter((file) => file.endsWith(".test.ts"))
  .flatMap(
    (file) => readFileSync(join(REPO, "test/attacks", file), "utf8").match(/^\s*[\w.)(\][]*\(?\s*["'`].*$/gm) ?? [],
  );

/** The numbers that a name says: `attack 7`, `attacks 7 and 8`, `attacks 7, 8, 9`, `attacks 7 to 9`. */
function numbersIn(name: string): readonly number[] {
  return [...name.matchAll(/\battacks? (\d+(?:(?:, (?:and )?| and | to |-)\d+)*)/gi)].flatMap(([, list = ""]) => {
    const ranges = list.split(/, (?:and )?| and /);
    return ranges.flatMap((range) => {
      const [from = 0, to = from] = range.split(/ to |-/).map(Number);
      return Array.from({ length: to - from + 1 }, (_, index) => from + index);
    });
  });
}

const NAMED = new Set(NAMES.flatMap(numbersIn));

it.each(ATTACKS)("attack %i has a test on a whole host that names it", (attack) => {
  expect([attack, NAMED.has(attack)]).toEqual([attack, true]);
});

it("finds numbers in lists and ranges", () => {
  expect(numbersIn("attacks 7, 8 and 10: x")).toEqual([7, 8, 10]);
  expect(numbersIn("x (attacks 41 to 43, D15)")).toEqual([41, 42, 43]);
  expect(numbersIn("attack 4: in 20 races")).toEqual([4]);
});
