import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { openRecords } from "./records.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-receipts-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});
const file = (): string => join(directory, "host.db");
const receipt = (scope: string, key: string, atMs: number, result = "{}") => ({
  scope,
  key,
  payloadHash: "h",
  result,
  atMs,
});
const keys = (): readonly string[] => {
  using db = new DatabaseSync(file(), { readOnly: true });
  return db
    .prepare("SELECT scope || ' ' || key AS name FROM receipts ORDER BY at_ms")
    .all()
    .map(({ name }) => String(name));
};
const MANY = { count: 1000, bytes: 1e6 };

describe("receipts", () => {
  it("of a session stay within its count and bytes, the newest of them, and leave its neighbours alone", async () => {
    await using records = await openRecords(file());
    {
      using db = new DatabaseSync(file());
      for (const token of ["a", "ab"]) db.prepare("INSERT INTO sessions VALUES (?, ?, '{}', NULL)").run(token, token);
    }
    for (let index = 0; index < 6; index += 1) {
      await records.call("keepReceipt", receipt("a/WriteFile", String(index), 10 + index));
      await records.call("keepReceipt", receipt("tenant/CreateSession", String(index), 10 + index));
    }
    await records.call("keepReceipt", receipt("ab/WriteFile", "0", 1));
    await records.call("keepReceipts", { beforeMs: 0, session: { count: 2, bytes: 1e6 }, host: MANY });
    const ofA = () => keys().filter((name) => name.startsWith("a/"));
    expect(ofA()).toEqual(["a/WriteFile 4", "a/WriteFile 5"]);
    expect(keys()).toHaveLength(2 + 6 + 1);
    await records.call("keepReceipt", receipt("a/WriteFile", "large", 99, "x".repeat(500)));
    await records.call("keepReceipts", { beforeMs: 0, session: { count: 9, bytes: 525 }, host: MANY });
    expect(ofA()).toEqual(["a/WriteFile large"]);
  });

  it("of all stay within the host's bounds: who has most loses its oldest; what is old goes in any case", async () => {
    await using records = await openRecords(file());
    for (let index = 0; index < 8; index += 1)
      await records.call("keepReceipt", receipt("busy/X", String(index), 10 + index));
    await records.call("keepReceipt", receipt("quiet/X", "0", 1));
    await records.call("keepReceipts", { beforeMs: 0, session: MANY, host: { count: 4, bytes: 1e6 } });
    expect(keys()).toEqual(["quiet/X 0", "busy/X 5", "busy/X 6", "busy/X 7"]);
    await records.call("keepReceipts", { beforeMs: 16, session: MANY, host: MANY });
    expect(keys()).toEqual(["busy/X 6", "busy/X 7"]);
  });

  it("go with their session", async () => {
    await using records = await openRecords(file());
    await records.call("keepReceipt", receipt("a/X", "0", 1));
    await records.call("keepReceipt", receipt("ab/X", "0", 2));
    await records.call("deleteSession", "a");
    expect(keys()).toEqual(["ab/X 0"]);
  });
});
