import path from "node:path";
import { beforeAll, describe, expect, it, jest } from "@jest/globals";
import { ESLint } from "eslint";

jest.setTimeout(120_000);

const root = path.resolve(import.meta.dirname, "../..");
const RULE = "@typescript-eslint/no-floating-promises";

let eslint: ESLint;
beforeAll(() => {
  // The rule needs types: a program of a few files has them sooner than that of all.
  const parserOptions = {
    project: ["test/house/promise/tsconfig.json"],
    tsconfigRootDir: root,
    // With CI=true the parser would read the file from the disk, and not the text that is given here.
    disallowAutomaticSingleRunInference: true,
  };
  eslint = new ESLint({ cwd: root, overrideConfig: [{ files: ["**/*.ts"], languageOptions: { parserOptions } }] });
});

/** Whether the rule objects to a use of `work`, which answers with a promise, in product code or in a test. */
async function objects(use: string, file: string): Promise<boolean> {
  const text = `declare function work(): Promise<void>;\nexport function start(): void {\n  ${use}\n}\n`;
  const [result] = await eslint.lintText(text, { filePath: path.join(root, file) });
  const messages = result?.messages ?? [];
  expect(messages.filter(({ ruleId }) => ruleId === null)).toEqual([]);
  return messages.some(({ ruleId }) => ruleId === RULE);
}

const PRODUCT = "packages/core/src/async/clock.ts";
const TEST = "packages/core/src/async/clock.test.ts";

describe("a promise in product code", () => {
  it.each([
    ["nothing", "work();"],
    ["void", "void work();"],
    ["a handler of success only", "work().then(() => undefined);"],
    ["void and a handler of success only", "void work().then(() => undefined);"],
    ["a handler of the end only", "void work().finally(() => undefined);"],
    ["void in an arrow function", "[1].forEach(() => void work());"],
    ["void in an event handler", 'process.on("exit", () => {\n    void work();\n  });'],
  ])("does not pass lint with %s", async (_, use) => {
    expect(await objects(use, PRODUCT)).toBe(true);
  });

  it.each([
    ["catch", "work().catch(() => undefined);"],
    ["two handlers", "work().then(() => undefined, () => undefined);"],
    ["catch at the end of a chain", "work().finally(() => undefined).catch(() => undefined);"],
  ])("passes lint with %s", async (_, use) => {
    expect(await objects(use, PRODUCT)).toBe(false);
  });

  it("may be void in a test", async () => {
    expect(await objects("void work();", TEST)).toBe(false);
    expect(await objects("work();", TEST)).toBe(true);
  });
});
