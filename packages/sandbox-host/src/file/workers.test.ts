import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { HostCommandRunner } from "../system/command/host-command-runner.ts";
import { createFileWorkers, type FileWorkers } from "./workers.ts";

const SLOW_MS = 60_000;
const CALL = { signal: new AbortController().signal };
let root: string;
const runner = new HostCommandRunner();
let workers: FileWorkers;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "turnbox-workers-"));
  mkdirSync(join(root, "workspace"));
  workers = createFileWorkers({ runner, nodePath: process.execPath });
});

afterAll(async () => {
  await workers[Symbol.asyncDispose]();
  await runner[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

const reasonOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (thrown: unknown) => SandboxError.from(thrown).reason,
  );

const write = (body: AsyncIterable<Uint8Array>, path = "file") =>
  workers.run("writeFile", { root, input: { path, mode: null, parents: "expect" }, body }, CALL);

describe("file workers", () => {
  it(
    "do one job after another, and kill one that passes its deadline",
    async () => {
      expect(await workers.run("nothing", { root, input: null }, CALL)).toBeNull();
      // A watch ends only when it is ended.
      const endless = { root, input: { path: "/", depth: "one" }, deadlineMs: 2000 } as const;
      expect(await reasonOf(workers.run("watchDirectory", endless, CALL))).toBe("DEADLINE_EXCEEDED");
      expect(await workers.run("nothing", { root, input: null }, CALL)).toBeNull();
      expect(workers.stats().quick.busy).toBe(0);
    },
    SLOW_MS,
  );

  it(
    "kill a job with its caller's signal, also if its pieces are not read",
    async () => {
      const leave = new AbortController();
      const input = { path: "/", depth: "one" } as const;
      using run = await workers.stream("watchDirectory", { root, input, lane: "watch" }, { signal: leave.signal });
      expect((await run.next())?.about).toMatchObject([{ kind: "started" }]);
      expect(workers.stats().watch.busy).toBe(1);
      leave.abort();
      expect(workers.stats().watch.busy).toBe(0);
      expect(await reasonOf(run.next())).toBe("CANCELLED");
    },
    SLOW_MS,
  );

  it(
    "take a body as it comes, and are free for the next job where they refuse it half way",
    async () => {
      async function* body() {
        for (let n = 0; n < 64; n += 1) yield Buffer.alloc(64 * 1024, n);
      }
      expect(await write(body())).toMatchObject({ path: "/workspace/file", sizeBytes: 4 * 1024 * 1024 });
      expect(readFileSync(join(root, "workspace/file")).at(-1)).toBe(63);
      for (let n = 0; n < 3; n += 1) expect(await reasonOf(write(body(), "missing/file"))).toBe("FILE_NOT_FOUND");
      expect(await workers.run("stat", { root, input: { path: "file" } }, CALL)).toMatchObject({ name: "file" });
    },
    SLOW_MS,
  );

  it(
    "take back what they began where the body breaks off",
    async () => {
      async function* broken() {
        yield Buffer.from("half");
        throw new SandboxError("CANCELLED", "the client is gone");
      }
      expect(await reasonOf(write(broken(), "half"))).toBe("CANCELLED");
      expect(readdirSync(join(root, "workspace"))).not.toContain("half");
      expect(readdirSync(join(root, "workspace")).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    },
    SLOW_MS,
  );

  it("report that a root is lost, and name no path of this machine in refusals", async () => {
    const lost = workers.run("stat", { root: join(root, "gone"), input: { path: "/" } }, CALL);
    await expect(lost).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE", metadata: { root: "lost" } });
    const refusal = await workers.run("stat", { root, input: { path: "/missing" } }, CALL).catch(String);
    expect(refusal).not.toContain(root);
  }, 60_000);

  it(
    "leave nothing of a write whose worker was killed: the next write in the directory takes it away",
    async () => {
      const temporaries = () => readdirSync(join(root, "workspace")).filter((name) => name.endsWith(".tmp"));
      const gate = Promise.withResolvers<undefined>();
      async function* halting(): AsyncGenerator<Uint8Array> {
        yield Buffer.from("first");
        await gate.promise;
      }
      const killed = reasonOf(write(halting(), "target"));
      const deadlineMs = performance.now() + SLOW_MS / 2;
      while (temporaries().length === 0 && performance.now() < deadlineMs)
        await new Promise((resolve) => setTimeout(resolve, 5));
      const [left = ""] = temporaries();
      process.kill(Number.parseInt(left.slice(9, 17), 16), "SIGKILL");
      gate.resolve(undefined);
      expect(await killed).toBe("INTERNAL");
      expect(temporaries()).toEqual([left]);

      // What is being written, and what only looks like ours, stays.
      const slow = Promise.withResolvers<undefined>();
      async function* waiting(): AsyncGenerator<Uint8Array> {
        yield Buffer.from("slow");
        await slow.promise;
      }
      const writing = write(waiting(), "slow");
      while (temporaries().every((name) => name === left) && performance.now() < deadlineMs)
        await new Promise((resolve) => setTimeout(resolve, 5));
      mkdirSync(join(root, "workspace", `.turnbox-${"0".repeat(24)}.tmp`));
      await write(Readable.from([Buffer.from("next")]), "target");
      expect(temporaries()).toHaveLength(2);
      slow.resolve(undefined);
      await writing;
      expect(temporaries()).toEqual([`.turnbox-${"0".repeat(24)}.tmp`]);
      expect(readFileSync(join(root, "workspace/target"), "utf8")).toBe("next");
      expect(readFileSync(join(root, "workspace/slow"), "utf8")).toBe("slow");
    },
    SLOW_MS,
  );
});
