import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import type { ObjectStore } from "../object-store.ts";
import { call, readText } from "../suite/suite-fixture.suite.ts";
import { openFileObjectStore } from "./file-object-store.ts";

const WRITER = join(import.meta.dirname, "counting-writer.suite.ts");
const TEST_MS = 90_000;

let directory: string;
let store: ObjectStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-objects-"));
  store = await openFileObjectStore({ directory, clock: systemClock }, call);
});

afterEach(async () => {
  await store[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const startWriter = (key: string, steps: number): ChildProcess =>
  spawn(process.execPath, [WRITER, directory, key, String(steps)], { stdio: ["ignore", "pipe", "inherit"] });

describe("several processes on one directory", () => {
  it(
    "lose no change of each other",
    async () => {
      await store.put("count", Buffer.from("0"), { condition: { kind: "absent" } }, call);
      const writers = [1, 2, 3].map(() => startWriter("count", 40));
      const ends = await Promise.all(writers.map((writer) => once(writer, "exit")));
      expect(ends.map(([code]) => code as number)).toEqual([0, 0, 0]);
      expect(await readText(store, "count")).toBe("120");
    },
    TEST_MS,
  );

  it(
    "go on when one of them is killed in the middle of its writes, which leaves whole objects and no lock",
    async () => {
      await store.put("count", Buffer.from("0"), { condition: { kind: "absent" } }, call);
      for (let round = 0; round < 4; round += 1) {
        const writer = startWriter("count", 1_000_000);
        let steps = 0;
        for await (const dots of writer.stdout!) {
          steps += (dots as Buffer).byteLength;
          if (steps > 3 + round) break;
        }
        writer.kill("SIGKILL");
        await once(writer, "exit");
        const before = Number(await readText(store, "count"));
        expect(before).toBeGreaterThanOrEqual(steps);
        const { etag } = (await store.stat("count", call))!;
        await store.put("count", Buffer.from(String(before + 1)), { condition: { kind: "matches", etag } }, call);
        expect(await readText(store, "count")).toBe(String(before + 1));
      }
    },
    TEST_MS,
  );
});
