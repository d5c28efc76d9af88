import { appendFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { HostCommandRunner } from "../system/command/host-command-runner.ts";
import { createFileWorkers, type FileWorkers } from "../file/workers.ts";
import { StoredJournals } from "./stored-journal.ts";

const PROCESS = { token: "t", processId: "p" };
const WORKER_START_MS = 60_000;

const runner = new HostCommandRunner();
afterAll(() => runner[Symbol.asyncDispose]());

describe.each(["directly", "by_worker"] as const)("journals in a storage that is touched %s", (touch) => {
  let workers: FileWorkers;
  let path: string;
  let opened: number;
  let journals: StoredJournals;
  beforeAll(() => {
    workers = createFileWorkers({ runner, nodePath: process.execPath });
  });
  afterAll(async () => {
    await workers[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), "turnbox-journals-"));
    opened = 0;
    const openJournals = () => {
      opened += 1;
      return Promise.resolve({ path, touch });
    };
    journals = new StoredJournals({ storage: { openJournals }, workers, quotaBytes: 1 });
  });
  afterEach(async () => {
    await rm(path, { recursive: true, force: true });
  });

  it(
    "are made, read, rotated and removed, and their directory is opened once",
    async () => {
      const journal = journals.of(PROCESS);
      await journal.make();
      const outputPath = await journal.outputPath();
      expect(outputPath).toBe(join(path, "p", "output"));
      await appendFile(outputPath, "0123456789");
      expect(await journal.read(4, 3)).toEqual({ data: Buffer.from("456"), offset: 4 });
      expect(await journal.liveBytes()).toBe(10);
      await journal.rotate(4);
      await appendFile(outputPath, "abc");
      expect(await journal.extent()).toEqual({ start: 6, end: 13 });
      expect(await journal.read(0, 100)).toEqual({ data: Buffer.from("6789"), offset: 6 });
      expect(journal.keptBytes).toBe(7);
      // For a later service, which has not seen the rotation.
      expect(await journals.of(PROCESS).extent()).toEqual({ start: 6, end: 13 });
      await journal.remove();
      expect(await readdir(path)).toEqual([]);
      expect(opened).toBe(1);
    },
    WORKER_START_MS,
  );

  it(
    "are opened again if opening them failed",
    async () => {
      let fails = 1;
      const openJournals = () =>
        fails-- > 0
          ? Promise.reject(new SandboxError("STORAGE_UNAVAILABLE", "not now"))
          : Promise.resolve({ path, touch });
      const journal = new StoredJournals({ storage: { openJournals }, workers, quotaBytes: 1 }).of(PROCESS);
      await expect(journal.make()).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await journal.make();
      expect(await readdir(path)).toEqual(["p"]);
    },
    WORKER_START_MS,
  );
});

describe("journals that a worker touches", () => {
  it(
    "are found again if their directory was replaced",
    async () => {
      const path = await mkdtemp(join(tmpdir(), "turnbox-journals-"));
      await using workers = createFileWorkers({ runner, nodePath: process.execPath });
      let opened = 0;
      const openJournals = async () => {
        opened += 1;
        await mkdir(join(path, "files"), { recursive: true });
        return { path: join(path, "files"), touch: "by_worker" } as const;
      };
      const journal = new StoredJournals({ storage: { openJournals }, workers, quotaBytes: 1 }).of(PROCESS);
      try {
        await journal.make();
        await rename(join(path, "files"), join(path, "old"));
        await journal.make();
        expect([opened, await readdir(join(path, "files"))]).toEqual([2, ["p"]]);
      } finally {
        await rm(path, { recursive: true, force: true });
      }
    },
    WORKER_START_MS,
  );
});
