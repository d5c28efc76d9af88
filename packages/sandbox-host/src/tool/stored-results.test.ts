import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ResultFiles } from "../record/result-files.ts";
import { openRecords, type Records } from "../record/records.ts";
import { until } from "../session/rig.suite.ts";
import type { ToolResult } from "./result.ts";
import { type ResultBounds, StoredResults } from "./stored-results.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-results-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});
const file = (): string => join(directory, "host.db");
const files = async (): Promise<readonly string[]> => await readdir(join(directory, "tool-results")).catch(() => []);

const resultOf = (content: string, more: Partial<ToolResult> = {}): ToolResult => ({
  content,
  isError: false,
  exitCode: 0,
  exitReason: "exited",
  stdout: { totalBytes: content.length, truncatedBytes: 0 },
  stderr: { totalBytes: 0, truncatedBytes: 0 },
  durationMs: 1,
  tier: 2,
  generation: 1,
  snapshotId: null,
  ...more,
});

function storeOn(records: Records, bounds: Partial<ResultBounds> = {}) {
  const all = { sessionBytes: MIB, hostBytes: 4 * MIB, ...bounds };
  const results = new StoredResults({ records, files: new ResultFiles(file()), bounds: all });
  let atMs = 0;
  return {
    results,
    finish: async (token: string, callId: string, result: ToolResult): Promise<void> => {
      atMs += 1;
      await records.call("beginCall", { token, callId, payloadHash: "h", generation: 1, headGeneration: 1, atMs });
      await results.finish({ token, callId }, { result, headGeneration: 1 });
    },
    load: async (token: string, callId: string): Promise<ToolResult | null> => {
      const known = await records.call("findCall", { token, callId });
      return known === null ? null : await results.load(known);
    },
  };
}

describe("StoredResults", () => {
  it("keeps a small result in the records and writes no file", async () => {
    await using records = await openRecords(file());
    const { finish, load } = storeOn(records);
    await finish("t", "c", resultOf("hello"));
    expect(await load("t", "c")).toEqual(resultOf("hello"));
    expect(await files()).toEqual([]);
  });

  it("keeps a large one as a file, byte for byte, over a reopening", async () => {
    const image = { kind: "image", mediaType: "image/png", base64: "A".repeat(80 * KIB) } as const;
    const large = resultOf(`\0é\u{1f600}\n"${"\0".repeat(300 * KIB)}`, {
      blocks: [{ kind: "text", text: "t" }, image],
    });
    {
      await using records = await openRecords(file());
      await storeOn(records).finish("t", "c", large);
      expect((await records.call("findCall", { token: "t", callId: "c" }))?.result?.length).toBeLessThan(KIB);
    }
    await using records = await openRecords(file());
    expect(await storeOn(records).load("t", "c")).toEqual(large);
    expect(await files()).toHaveLength(1);
  });

  it("drops the oldest results of a session over its bound, and knows how those calls ended", async () => {
    await using records = await openRecords(file());
    const { finish, load } = storeOn(records);
    await finish("other", "c", resultOf("o".repeat(200 * KIB)));
    for (let index = 0; index < 10; index += 1)
      await finish("t", String(index), resultOf("x".repeat((index % 2 === 0 ? 200 : 50) * KIB)));
    const dropped = await load("t", "0");
    expect(dropped).toMatchObject({ contentDropped: true, exitCode: 0, stdout: { truncatedBytes: 200 * KIB } });
    expect(dropped?.content).toBe("[the output of this call is no longer kept]");
    expect(await load("t", "1")).toMatchObject({ contentDropped: true, stdout: { truncatedBytes: 50 * KIB } });
    expect((await load("t", "9"))?.content).toHaveLength(50 * KIB);
    expect((await load("t", "8"))?.content).toHaveLength(200 * KIB);
    expect((await load("other", "c"))?.content).toHaveLength(200 * KIB);
    const bytes = await records.call("resultBytes", null);
    expect(bytes["t"]).toBeLessThanOrEqual(MIB);
    await records.call("keepFact", { name: "n", value: "v" });
    expect((await files()).length).toBeLessThan(6);
  });

  it("takes from the sessions that hold most over the host's bound", async () => {
    await using records = await openRecords(file());
    const { finish, load } = storeOn(records, { hostBytes: MIB });
    await finish("quiet", "c", resultOf("q".repeat(100 * KIB)));
    for (let index = 0; index < 5; index += 1) await finish("busy", String(index), resultOf("b".repeat(240 * KIB)));
    expect((await load("quiet", "c"))?.content).toHaveLength(100 * KIB);
    expect(await load("busy", "0")).toMatchObject({ contentDropped: true });
    expect((await load("busy", "4"))?.content).toHaveLength(240 * KIB);
  });

  it("keeps of a result that is larger than its bound how the call ended", async () => {
    await using records = await openRecords(file());
    const { finish, load } = storeOn(records, { sessionBytes: 100 * KIB });
    await finish("t", "c", resultOf("x".repeat(101 * KIB)));
    expect(await load("t", "c")).toMatchObject({ contentDropped: true, exitCode: 0 });
    expect(await files()).toEqual([]);
  });

  it("removes a file with its row, and at a start those that no row has", async () => {
    {
      await using records = await openRecords(file());
      const { finish } = storeOn(records);
      for (const token of ["a", "b"]) await finish(token, "c", resultOf("x".repeat(100 * KIB)));
      await records.call("deleteSession", "a");
      // Files are removed after the answer to the change that took their rows.
      await until(async () => (await files()).length === 1);
      // The session went while its call was under way.
      await new StoredResults({
        records,
        files: new ResultFiles(file()),
        bounds: { sessionBytes: MIB, hostBytes: MIB },
      }).finish({ token: "gone", callId: "c" }, { result: resultOf("x".repeat(100 * KIB)), headGeneration: 1 });
      await records.call("keepFact", { name: "n", value: "w" });
      await until(async () => (await files()).length === 1);
    }
    await writeFile(join(directory, "tool-results", "orphan"), "x");
    await using records = await openRecords(file());
    expect(await files()).toHaveLength(1);
    expect((await storeOn(records).load("b", "c"))?.content).toHaveLength(100 * KIB);
  });

  it("returns a result without content if a file is gone or not whole", async () => {
    await using records = await openRecords(file());
    const { finish, load } = storeOn(records);
    await finish("t", "c", resultOf("x".repeat(100 * KIB)));
    const [name = ""] = await files();
    await writeFile(join(directory, "tool-results", name), '{"content":100,"blocks":[]}\nshort');
    expect(await load("t", "c")).toMatchObject({ contentDropped: true, exitCode: 0 });
    await rm(join(directory, "tool-results", name));
    expect(await load("t", "c")).toMatchObject({ contentDropped: true, exitCode: 0 });
  });
});
