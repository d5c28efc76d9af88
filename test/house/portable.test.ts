import path from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ESLint } from "eslint";
import tseslint from "typescript-eslint";

const root = path.resolve(import.meta.dirname, "../..");
const RULES = ["@typescript-eslint/no-restricted-imports", "no-restricted-syntax"];

let eslint: ESLint;
beforeAll(() => {
  // The texts are in no file, so they have no types; the rules under test need none.
  eslint = new ESLint({
    cwd: root,
    ignore: false,
    overrideConfig: [
      { files: ["**/*.ts"], ...tseslint.configs.disableTypeChecked },
      { files: ["**/*.ts"], languageOptions: { parserOptions: { project: null } } },
    ],
  });
});

async function objections(file: string, text: string): Promise<readonly (string | null)[]> {
  const [result] = await eslint.lintText(text, { filePath: path.join(root, file) });
  return (result?.messages ?? []).map(({ ruleId }) => ruleId).filter((rule) => rule === null || RULES.includes(rule));
}

const RUNNER = 'import { createAide } from "@turnbox/core";\nexport const x = createAide;\n';
const PATH = 'export const x = "/proc/self/mountinfo";\n';
const TEMPLATE = "export const x = (pid: number) => `/proc/${pid}/stat`;\n";

describe("what others install", () => {
  it.each([
    ["packages/client/src/home.ts", RUNNER],
    ["packages/agents/src/mcp/workspace.ts", RUNNER],
    ["packages/cli/src/verb/run.ts", RUNNER],
    ["packages/client/src/config.ts", PATH],
    ["packages/agents/src/mcp/workspace.ts", PATH],
    ["packages/cli/src/verb/run.ts", TEMPLATE],
  ])("imports and opens nothing that only Linux has: %s", async (file, text) => {
    expect(await objections(file, text)).toHaveLength(1);
  });

  it.each([
    ["packages/cli/src/verb/reset.ts", PATH],
    ["packages/cli/src/service/foreground-child.ts", RUNNER],
    ["packages/sandbox-host/src/system/x.ts", PATH],
    ["packages/client/src/home.test.ts", TEMPLATE],
  ])("does so in what serves on this machine, in hosts and in tests: %s", async (file, text) => {
    expect(await objections(file, text)).toEqual([]);
  });

  it("reads the environment in its configuration only", async () => {
    const text = "export const x = process.env;\n";
    expect(await objections("packages/client/src/home.ts", text)).toEqual(["no-restricted-syntax"]);
    expect(await objections("packages/client/src/config.ts", text)).toEqual([]);
  });
});
