import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { openRecords } from "./records.ts";
import { SCHEMA_VERSION } from "./schema.ts";

const MIB = 1024 * 1024;
/** What the code before this version wrote, as SQL. */
const BEFORE = new URL("schema-3.sql", import.meta.url);

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-schema-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});
const file = (): string => join(directory, "host.db");

async function makeOld(change: (db: DatabaseSync) => void = () => undefined): Promise<void> {
  using db = new DatabaseSync(file());
  db.exec(await readFile(BEFORE, "utf8"));
  change(db);
}

/** All that is in the file, by table. */
function contents(): Readonly<Record<string, unknown>> {
  using db = new DatabaseSync(file(), { readOnly: true });
  const tables = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
  const version = db.prepare("PRAGMA user_version").get();
  const rows = tables
    .filter(({ sql }) => String(sql).startsWith("CREATE TABLE"))
    .map(({ name }) => [String(name), db.prepare(`SELECT * FROM ${String(name)}`).all()]);
  return { version, tables, rows };
}

describe("records of schema version 3", () => {
  it("come up with everything: sessions, forks, a paused one, turns, calls, receipts, a running process", async () => {
    await makeOld();
    await using records = await openRecords(file());
    const sessions = await records.call("listSessions", null);
    expect(sessions.map(({ id, phase, turnCounter }) => [id, phase.kind, turnCounter])).toEqual([
      ["parent", "active", 1],
      ["fork1", "active", 1],
      ["fork2", "active", 1],
      ["paused", "paused", 0],
      ["plain", "active", 0],
    ]);
    const env = { TOKEN: "s3cret", LONG: "x".repeat(300) };
    expect(sessions.map((row) => row.env)).toEqual([env, env, env, { OTHER: "1" }, {}]);
    expect(sessions[1]?.forkedFrom).toEqual({ sessionId: "parent", snapshotId: "sn1" });
    expect(await records.call("listSnapshots", "tparent")).toMatchObject([{ id: "sn1", turnKey: "k1" }]);
    const known = async (callId: string) => await records.call("findCall", { token: "tparent", callId });
    expect(JSON.parse((await known("small"))?.result ?? "")).toMatchObject({ content: "hello\n", exitCode: 0 });
    expect(JSON.parse((await known("nuls"))?.result ?? "")).toMatchObject({ content: "\0".repeat(200) });
    expect(await known("small")).toMatchObject({ status: "finished", position: "live", payloadHash: "h-small" });
    expect(await known("cut")).toMatchObject({ status: "started", result: null, resultFile: null });
    expect(await records.call("findReceipt", { scope: "tparent/TurnComplete", key: "k1" })).toMatchObject({
      payloadHash: "p",
    });
    expect(await records.call("listProcesses", null)).toMatchObject([{ processId: "p1", started: "yes", end: null }]);
    expect(await records.call("listHusks", null)).toMatchObject([{ token: "thusk" }]);
    expect(await records.call("listIdle", null)).toEqual({ tparent: 7 });
    expect(await records.call("listLostHeads", null)).toEqual([{ token: "tpaused", generation: 1 }]);
    expect(await records.call("nextNumber", "snapshot")).toBe(3);
    expect(await records.call("resultBytes", null)).toEqual({ tparent: expect.any(Number) });
  });

  it("give the space of large results back, which the older version never did", async () => {
    await makeOld((db) => {
      const result = JSON.stringify({ content: "x".repeat(8 * MIB) });
      db.prepare("UPDATE calls SET result = ? WHERE call_id = 'small'").run(result);
    });
    await using records = await openRecords(file());
    expect((await records.call("resultBytes", null))["tparent"]).toBeGreaterThan(8 * MIB);
    expect(await records.call("dropResults", { token: "tparent", keepBytes: MIB })).toBeLessThan(MIB);
    const small = await records.call("findCall", { token: "tparent", callId: "small" });
    expect(JSON.parse(small?.result ?? "")).toEqual({ content: "", contentDropped: true });
    await records.call("keepFact", { name: "n", value: "v" });
    using db = new DatabaseSync(file(), { readOnly: true });
    expect(Number(db.prepare("PRAGMA page_count").get()?.["page_count"]) * 4096).toBeLessThan(2 * MIB);
  });

  it("are as they were after a migration that failed in its middle, and come up when its cause is gone", async () => {
    await makeOld((db) => {
      db.exec("INSERT INTO sessions VALUES ('torn', 'ttorn', 'not JSON')");
    });
    const before = contents();
    expect(before["version"]).toEqual({ user_version: 3 });
    await expect(openRecords(file())).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    expect(contents()).toEqual(before);
    {
      using db = new DatabaseSync(file());
      db.exec("DELETE FROM sessions WHERE id = 'torn'");
    }
    await using records = await openRecords(file());
    expect(await records.call("listSessions", null)).toHaveLength(5);
  });
});

describe("records of a later version", () => {
  it("are refused with the version to use, and left alone", async () => {
    await makeOld((db) => {
      db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    });
    const before = contents();
    await expect(openRecords(file())).rejects.toMatchObject({
      reason: "HOME_VERSION_UNSUPPORTED",
      message: expect.stringContaining(`schema version ${SCHEMA_VERSION + 1}`),
      remedy: expect.stringContaining("Run the version that wrote it"),
    });
    expect(contents()).toEqual(before);
  });
});
