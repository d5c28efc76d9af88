import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { REPO } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

/** What V8 writes for one script: its functions, the module itself first, and how often each ran. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** How often each function of each source file ran, in all processes together. */
type Counts = ReadonlyMap<string, ReadonlyMap<number, number>>;

interface Walk {
  readonly name: string;
  readonly lines: number;
  readonly files: readonly string[];
}

/** The compiled files of a script by where each begins: a bundle names them in comments. */
async function readParts(script: string): Promise<readonly { readonly from: number; readonly file: string }[]> {
  const name = relative(REPO, script);
  if (/^packages\/[^/]+\/dist\//.test(name)) return [{ from: 0, file: name }];
  if (!/^packages\/[^/]+\/bundle\//.test(name)) return [];
  const text = await readFile(script, "utf8");
  const comments = text.matchAll(/^ *\/\/ (\S+\.(?:[cm]?js|json|ts))$/gm);
  return [...comments].map(({ index, 1: file = "" }) => ({ from: index, file }));
}

const sourceOf = (file: string): string => file.replace("/dist/", "/src/").replace(/\.js$/, ".ts");

async function readCounts(folder: string): Promise<Counts> {
  const counts = new Map<string, Map<number, number>>();
  for (const name of await readdir(folder)) {
    const { result } = JSON.parse(await readFile(join(folder, name), "utf8")) as { result: readonly ScriptCoverage[] };
    for (const { url, functions } of result.filter((script) => script.url.startsWith("file://"))) {
      const parts = await readParts(fileURLToPath(url));
      for (const { ranges } of functions.slice(1)) {
        const { startOffset = 0, count = 0 } = ranges[0] ?? {};
        const part = parts.findLast(({ from }) => from <= startOffset);
        if (part === undefined || count === 0) continue;
        const ofFile = counts.get(sourceOf(part.file)) ?? new Map<number, number>();
        ofFile.set(startOffset, (ofFile.get(startOffset) ?? 0) + count);
        counts.set(sourceOf(part.file), ofFile);
      }
    }
  }
  return counts;
}

/** What ran while a server was up and `use` was done with it. */
async function countRuns(use: (server: TestServer) => Promise<void>): Promise<Counts> {
  const folder = await mkdtemp(join(tmpdir(), "turnbox-walks-"));
  try {
    {
      // Functions that come from a compile cache may be missing in what is counted.
      const env = { NODE_V8_COVERAGE: folder, NODE_DISABLE_COMPILE_CACHE: "1" };
      await using server = await startServer({ env });
      await use(server);
      await server.stop();
    }
    return await readCounts(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The walks of docs/ARCHITECTURE.md: a section each, with files as `package/room/file.ts`. */
async function readWalks(): Promise<readonly Walk[]> {
  const text = await readFile(join(REPO, "docs/ARCHITECTURE.md"), "utf8");
  const sections = text.split(/^##+ /m).filter((section) => section.startsWith("Walk: "));
  return sections.map((section) => {
    const [title = "", ...lines] = section.trim().split("\n");
    const files = [...section.matchAll(/`([a-z-]+)\/([\w./-]+\.ts)`/g)];
    return {
      name: title.replace("Walk: ", ""),
      lines: lines.filter((line) => line !== "").length,
      files: files.map(([, owner = "", inner = ""]) => `packages/${owner}/src/${inner}`),
    };
  });
}

async function createExecuteRollback(server: TestServer): Promise<void> {
  const sandbox = String((await server.json("create", "--template", "mini"))["sandboxId"]);
  const turn = await server.json("turn", sandbox);
  expect((await server.cli("exec", sandbox, "--", "sh", "-c", "echo later > later.txt")).exitCode).toBe(0);
  expect((await server.cli("rollback", sandbox, String(turn["snapshotId"]))).exitCode).toBe(0);
}

describe("the walks of docs/ARCHITECTURE.md", () => {
  it("name files of which functions ran in a create, an execute and a rollback, and not only in a start", async () => {
    const idle = await countRuns(async () => {
      // A start and a stop alone.
    });
    const used = await countRuns(createExecuteRollback);
    const ran = (file: string): boolean =>
      [...(used.get(file) ?? [])].some(([at, count]) => count > (idle.get(file)?.get(at) ?? 0));
    const walks = await readWalks();
    expect(walks.map(({ name }) => name)).toEqual(["create", "execute", "rollback"]);
    for (const { name, lines, files } of walks) {
      expect({ name, isShort: lines < 25, namesFiles: files.length >= 8 }).toEqual({
        name,
        isShort: true,
        namesFiles: true,
      });
      expect({ name, didNotRun: files.filter((file) => !ran(file)) }).toEqual({ name, didNotRun: [] });
    }
  }, 240_000);
});
