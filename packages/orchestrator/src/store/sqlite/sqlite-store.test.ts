import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { openSqliteStore } from "./sqlite-store.ts";

const CALL = { signal: new AbortController().signal };

describe("openSqliteStore", () => {
  let directory = "";
  let path = "";

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-store-"));
    path = join(directory, "fleet.db");
  });

  afterEach(async () => {
    await rm(directory, { recursive: true });
  });

  const fill = async (): Promise<void> => {
    await using store = await openSqliteStore(path, CALL);
    for (let index = 0; index < 50; index++) {
      const instanceId = `i-${String(index)}`;
      const labels = { filler: "x".repeat(500) };
      const row = { instanceId, admission: "open", labels, createdAtMs: 1, image: "", drain: undefined } as const;
      await store.putInstance({ ...row, goal: "running", hasAnswered: true, version: 0 }, CALL);
    }
  };

  it("finds again what it wrote before it was closed", async () => {
    await fill();
    await using store = await openSqliteStore(path, CALL);
    expect(await store.listInstances(CALL)).toHaveLength(50);
  });

  it("upgrades a file of version 1 and keeps what is in it", async () => {
    const database = new DatabaseSync(path);
    database.exec(`
      CREATE TABLE instances (instance_id TEXT PRIMARY KEY, admission TEXT NOT NULL, labels TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL) STRICT;
      CREATE TABLE sandboxes (session_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT, labels TEXT NOT NULL,
        instance_id TEXT, phase TEXT NOT NULL, created_at_ms INTEGER NOT NULL) STRICT;
      CREATE TABLE idempotency (tenant TEXT NOT NULL, method TEXT NOT NULL, key TEXT NOT NULL,
        payload_hash TEXT NOT NULL, plan TEXT NOT NULL, result TEXT, begun_at_ms INTEGER NOT NULL,
        PRIMARY KEY (tenant, method, key)) STRICT, WITHOUT ROWID;
      INSERT INTO instances VALUES ('local-1', 'cordoned', '{"zone":"1"}', 7);
      PRAGMA application_id = ${String(0x7462666c)};
      PRAGMA user_version = 1`);
    database.close();
    await using store = await openSqliteStore(path, CALL);
    const [instance] = await store.listInstances(CALL);
    expect(instance).toMatchObject({ instanceId: "local-1", admission: "cordoned", goal: "running", image: "" });
    expect(instance?.drain).toBeUndefined();
    expect(await store.acquireLease({ holder: "a", ttlMs: 1000 }, CALL)).toEqual({ holder: "a", epoch: 1 });
    if (instance !== undefined) expect(await store.putInstance({ ...instance, goal: "stopped" }, CALL)).toBe("put");
  });

  it("never gives an epoch again, also after it was closed", async () => {
    for (const epoch of [1, 2, 3]) {
      await using store = await openSqliteStore(path, CALL);
      const lease = await store.acquireLease({ holder: `process-${String(epoch)}`, ttlMs: 1000 }, CALL);
      expect(lease?.epoch).toBe(epoch);
      if (lease !== undefined) await store.releaseLease(lease, CALL);
    }
  });

  it("refuses a file of a newer version and leaves it as it is", async () => {
    await fill();
    const database = new DatabaseSync(path);
    database.exec("PRAGMA user_version = 99");
    database.close();
    await expect(openSqliteStore(path, CALL)).rejects.toMatchObject({
      reason: "HOME_VERSION_UNSUPPORTED",
      message: expect.stringContaining("version 99"),
    });
    const again = new DatabaseSync(path);
    expect(again.prepare("PRAGMA user_version").get()).toMatchObject({ user_version: 99 });
    again.close();
  });

  it("refuses a torn file", async () => {
    await fill();
    await truncate(path, 8192);
    await expect(openSqliteStore(path, CALL)).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
      message: expect.stringContaining("damaged"),
    });
  });

  it("refuses a file that is no database and leaves it as it is", async () => {
    const text = "notes of somebody else\n".repeat(100);
    await writeFile(path, text);
    await expect(openSqliteStore(path, CALL)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    expect(await readFile(path, "utf8")).toBe(text);
  });

  it("refuses a database of another program", async () => {
    const database = new DatabaseSync(path);
    database.exec("CREATE TABLE other (x)");
    database.close();
    await expect(openSqliteStore(path, CALL)).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
      message: expect.stringContaining("another program"),
    });
  });

  it("names the file when its directory is not there", async () => {
    await expect(openSqliteStore(join(directory, "no", "fleet.db"), CALL)).rejects.toMatchObject({
      message: expect.stringContaining("fleet.db"),
    });
  });

  it("answers nothing after it was closed", async () => {
    const store = await openSqliteStore(path, CALL);
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await expect(store.listInstances(CALL)).rejects.toMatchObject({ reason: "SHUTTING_DOWN" });
  });
});
