import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { findPackage } from "./service-program.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-service-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(join(directory, path)), { recursive: true });
  await writeFile(join(directory, path), text);
};

describe("findPackage", () => {
  const manifest = JSON.stringify({ version: "1.2.3", bin: { o: "./bin/o.mjs" } });

  it("looks in node_modules of each directory and above it, the nearest first", async () => {
    await write("node_modules/@turnbox/orchestrator/package.json", manifest);
    await write("node_modules/@turnbox/orchestrator/bin/o.mjs", "");
    const found = findPackage("@turnbox/orchestrator", [join(directory, "a/b/c")]);
    expect(found).toEqual({ entry: join(directory, "node_modules/@turnbox/orchestrator/bin/o.mjs"), version: "1.2.3" });
  });

  it("finds nothing where the program itself is missing", async () => {
    await write("node_modules/@turnbox/orchestrator/package.json", manifest);
    expect(findPackage("@turnbox/orchestrator", [directory])).toBeUndefined();
  });
});
