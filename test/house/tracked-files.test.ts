import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

const root = path.resolve(import.meta.dirname, "../..");
const LEFT_OUT = new Set([
  ".git",
  ".toolchain",
  "node_modules",
  "dist",
  "gen",
  "coverage",
  "results",
  "pnpm-lock.yaml",
]);
const REGISTRY = /https?:\/\/[a-z0-9.-]*(debian|npmjs|pypi|golang)[a-z0-9.-]*\.(org|com)/i;

function listFiles(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !LEFT_OUT.has(name) && !name.endsWith(".tsbuildinfo"))
    .flatMap((entry) => {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) return listFiles(file);
      return entry.isFile() ? [file] : [];
    });
}

const holding = (isHeld: (text: string) => boolean): readonly string[] =>
  listFiles(root)
    .filter((file) => isHeld(readFileSync(file, "latin1")))
    .map((file) => path.relative(root, file));

describe("the files of the project", () => {
  it("are found", () => {
    expect(holding(() => true)).toEqual(expect.arrayContaining(["package.json", "test/house/tracked-files.test.ts"]));
  });

  it("name no package registry: it is the user's to choose", () => {
    const mirrors = ["registry.npmjs.org", "deb.debian.org/debian"].map((name) => `https://${name}`);
    for (const mirror of mirrors) expect(mirror).toMatch(REGISTRY);
    expect(holding((text) => REGISTRY.test(text))).toEqual([]);
  });

  it("do not know where the clone is", () => {
    // The path of a clone directly below / is too ordinary a word to look for.
    const isTelling = root.split(path.sep).length > 2;
    expect(isTelling ? holding((text) => text.includes(`${root}/`)) : []).toEqual([]);
  });
});
