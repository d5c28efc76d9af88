import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";

const root = path.resolve(import.meta.dirname, "../..");
const LEFT_OUT = new Set([
  ".git",
  ".toolchain",
  "node_modules",
  "dist",
  "bundle",
  "dist-pack",
  "gen",
  "coverage",
  "results",
  "pnpm-lock.yaml",
]);
const REGISTRY = /https?:\/\/[a-z0-9.-]*(debian|npmjs|pypi|golang)[a-z0-9.-]*\.(org|com)/i;

/** Runners that take a name for a package of the registry and run what is there. `--no-install` keeps npx from it. */
const FOREIGN_RUN = /\b(npx|npm (exec|x)|(pnpm|yarn) dlx|bunx)( -(?!-no-install\b)\S+)* @?turnbox\b/;
/** Command lines are also written as lists of strings. */
const asLine = (text: string): string => text.replace(/["',[\]]|\bargs:/g, " ").replace(/ +/g, " ");

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

  it("never have a runner ask a registry for turnbox, which may be the package of another", () => {
    const [name, runner] = ["turnbox", "npx"];
    const asking = [`${runner} ${name} up`, `${runner} -y @${name}/client`, `["${runner}", "-y", "${name}"]`];
    for (const line of asking) expect(asLine(line)).toMatch(FOREIGN_RUN);
    for (const line of [`${runner} --no-install ${name} up`, `["${runner}", "--no-install", "${name}"]`])
      expect(asLine(line)).not.toMatch(FOREIGN_RUN);
    expect(holding((text) => FOREIGN_RUN.test(asLine(text)))).toEqual([]);
  });

  it("do not know where the clone is", () => {
    // The path of a clone directly below / is too ordinary a word to look for.
    const isTelling = root.split(path.sep).length > 2;
    expect(isTelling ? holding((text) => text.includes(`${root}/`)) : []).toEqual([]);
  });
});
