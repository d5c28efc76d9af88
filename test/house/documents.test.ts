import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { run } from "../support/process.ts";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const DOCUMENTS = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...readdirSync(path.join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** The reference of the library shows signatures, which are no statements. */
const isGenerated = (file: string): boolean => read(file).startsWith("<!-- Generated");

interface Block {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

function listBlocks(file: string): readonly Block[] {
  const text = read(file);
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => ({
    file,
    line: text.slice(0, match.index).split("\n").length,
    code: match[1] ?? "",
  }));
}

/** A module in which the block is the body of a function that is given a server and a sandbox. */
function wrap({ code }: Block): string {
  const imports = code.match(/^import .*?;$/gms) ?? [];
  const body = imports.reduce((rest, statement) => rest.replace(statement, ""), code);
  const given = "import type { Sandbox as GivenSandbox, Turnbox as GivenTurnbox } from '@turnbox/client';";
  return `${imports.join("\n")}\n${given}
export async function block(turnbox: GivenTurnbox, sandbox: GivenSandbox): Promise<unknown> {
  {\n${body}\n  }
  return [turnbox, sandbox];
}
`;
}

/** What the compiler says about these blocks. Everything else of the project has its own check. */
async function complaints(blocks: readonly Block[]): Promise<readonly string[]> {
  const folder = mkdtempSync(path.join(tmpdir(), "turnbox-documents-"));
  try {
    const name = ({ file, line }: Block) => `${path.basename(file, ".md")}-${line}.ts`;
    for (const block of blocks) writeFileSync(path.join(folder, name(block)), wrap(block));
    writeFileSync(path.join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const settings = {
      extends: path.join(root, "tsconfig.lint.json"),
      compilerOptions: {
        noUnusedLocals: false,
        noUnusedParameters: false,
        typeRoots: [path.join(root, "node_modules/@types")],
      },
      include: [`${folder}/*.ts`],
    };
    writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(settings));
    const compiler = path.join(root, "node_modules/@typescript/native/bin/tsc");
    const { stdout } = await run(process.execPath, [compiler, "-p", folder, "--pretty", "false"], { cwd: folder });
    return stdout.split("\n").filter((line) => /^[A-Za-z]+-\d+\.ts\(/.test(line) || line.startsWith("error "));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("the documents", () => {
  it("hold code that compiles against the client", async () => {
    const blocks = DOCUMENTS.filter((file) => !isGenerated(file)).flatMap(listBlocks);
    expect(blocks.map(({ file }) => file)).toEqual(expect.arrayContaining(["README.md", "docs/GUIDE.md"]));
    expect(await complaints(blocks)).toEqual([]);
  }, 60_000);

  it("would not get away with code that does not", async () => {
    const wrong = { file: "wrong.md", line: 1, code: "await sandbox.bash(1);\nawait sandbox.nothing();\n" };
    expect(await complaints([wrong])).toEqual([
      expect.stringContaining("wrong-1.ts(5,"),
      expect.stringContaining("wrong-1.ts(6,"),
    ]);
  }, 60_000);

  it.each(DOCUMENTS)("lead somewhere with every link: %s", (file) => {
    const targets = [...read(file).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "");
    const relative = targets.filter((target) => !/^[a-z]+:/.test(target) && !target.startsWith("#"));
    const missing = relative.filter((target) => {
      const [to = ""] = target.split("#");
      return !existsSync(path.join(root, path.dirname(file), to));
    });
    expect(missing).toEqual([]);
  });
});

describe("the recorded session", () => {
  it("is a small picture made of text", () => {
    const picture = read("docs/img/session.svg");
    expect(picture.length).toBeLessThan(100_000);
    expect(picture).toContain("turnbox rollback demo 1</text>");
    expect(picture).not.toContain("<image");
  });
});

describe("the examples", () => {
  const names = readdirSync(path.join(root, "examples"));

  it("are each under 60 lines and import nothing but the client", () => {
    expect(names.length).toBeGreaterThan(3);
    for (const name of names) {
      const text = read(`examples/${name}`);
      expect({ name, isShort: text.split("\n").length <= 60 }).toEqual({ name, isShort: true });
      expect([...text.matchAll(/ from "([^"]+)"/g)].map((match) => match[1])).toEqual(["@turnbox/client"]);
    }
  });

  it("are each named in the guide and run by a test", () => {
    for (const name of names) {
      expect(read("docs/GUIDE.md")).toContain(`../examples/${name}`);
      expect(read("test/e2e/examples.test.ts")).toContain(`example("${path.basename(name, ".ts")}")`);
    }
  });
});
