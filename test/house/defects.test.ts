import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { REPO } from "../support/process.ts";

/** Defects of the systems that Turnbox descends from. Those of adapters to other clouds come with the adapters. */
const OF_LATER_ADAPTERS = ["D36", "D38"];
const DEFECTS = Array.from({ length: 40 }, (_, index) => `D${index + 1}`).filter(
  (defect) => !OF_LATER_ADAPTERS.includes(defect),
);

/** The names of all tests: what stands between the quotes after `it(` and its like, in test and suite files. */
const NAMES: readonly string[] = ["packages", "test"]
  .flatMap((folder) =>
    readdirSync(join(REPO, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
  )
  .filter((file) => /\.(test|suite)\.ts$/.test(file) && !/(^|\/)(node_modules|dist|gen)\//.test(file))
  .flatMap((file) => readFileSync(join(REPO, file), "utf8").match(/^\s*\w+\(\s*["'`].*$/gm) ?? []);

it.each(DEFECTS)("%s has a test that names it", (defect) => {
  const isNamed = NAMES.some((name) => new RegExp(`\\b${defect}\\b`).test(name));
  expect([defect, isNamed]).toEqual([defect, true]);
});
