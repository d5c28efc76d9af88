import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { storeSuite } from "../store.suite.ts";
import { openSqliteStore } from "./sqlite-store.ts";

let directory = "";
let count = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-store-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true });
});

storeSuite("sqlite", async () => {
  const clock = createManualClock();
  const { signal } = new AbortController();
  const store = await openSqliteStore(join(directory, `${String(count++)}.db`), { signal, clock });
  const passMs = async (ms: number): Promise<void> => {
    clock.stepWallTime(ms);
  };
  return { store, passMs };
});
