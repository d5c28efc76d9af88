import { PassThrough, Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import type { CommandExit, CommandRunner } from "@turnbox/core";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { FrameWriter } from "../../stream-frames.ts";
import { ZfsCommand } from "../zfs-command.ts";
import type { ZfsLimits } from "../zfs-pool.ts";
import { takeIn } from "./taking-in.ts";
import { GUID, PARENT_GUID, zfsStream } from "./zfs-stream.suite.ts";

const NEVER = new AbortController().signal;

/** A `zfs receive` that reads nothing, and ends when it is killed or, if it is well, when its input is closed. */
function createReceiver(clock: ManualClock, health: "well" | "hung") {
  const ends: string[] = [];
  const runner: Pick<CommandRunner, "start"> = {
    start: () => {
      const exit = Promise.withResolvers<CommandExit>();
      const stdin = new PassThrough();
      stdin.on("close", () => {
        ends.push("closed");
        if (health === "well") exit.resolve({ kind: "exited", exitCode: 1 });
      });
      const kill = (): void => {
        ends.push("killed");
        exit.resolve({ kind: "signaled", signal: "SIGKILL", deadline: "kept" });
      };
      const outputs = { stdout: Readable.from([]), stderr: Readable.from(["cannot receive: invalid backup stream\n"]) };
      return Promise.resolve({ pid: 1, stdin, ...outputs, ended: exit.promise, exit: exit.promise, kill });
    },
  };
  const zfs = new ZfsCommand({ runner: runner as CommandRunner, clock, deadlineMs: 1000 });
  const limits = { streamPatienceMs: 1000 } as ZfsLimits;
  return { ends, pool: { zfs, clock, limits, flavor: "zfs-fuse" } as const };
}

function framed(): FrameWriter {
  const bytes = zfsStream(Buffer.alloc(400_000, 7));
  return Readable.from([bytes], { objectMode: false }).pipe(new FrameWriter({ beforeEnd: () => Promise.resolve() }));
}

const target = () => Promise.resolve({ args: ["pool/t@s"] });
const expected = { guid: GUID, parentGuid: PARENT_GUID, target };

/** Lets time pass until the work has ended. */
async function whileTimePasses(clock: ManualClock, work: Promise<unknown>): Promise<unknown> {
  const over = new AbortController();
  const outcome = work
    .catch((thrown: unknown) => thrown)
    .finally(() => {
      over.abort();
    });
  for (let seconds = 0; !over.signal.aborted && seconds < 60; seconds += 1) await clock.advance(1000);
  return await outcome;
}

describe("takeIn", () => {
  it("ends by itself if zfs reads nothing, by the end of its input", async () => {
    const clock = createManualClock();
    const { pool, ends } = createReceiver(clock, "well");
    const source = framed();
    const taking = takeIn(pool, source, { expected, signal: NEVER });
    expect(await whileTimePasses(clock, taking)).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    expect([ends, source.destroyed]).toEqual([["closed"], true]);
  });

  it("kills a zfs that does not end either", async () => {
    const clock = createManualClock();
    const { pool, ends } = createReceiver(clock, "hung");
    const taking = takeIn(pool, framed(), { expected, signal: NEVER });
    expect(await whileTimePasses(clock, taking)).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    expect(ends).toEqual(["closed", "killed"]);
  });

  it("ends with its caller although zfs reads nothing", async () => {
    const { pool } = createReceiver(createManualClock(), "well");
    const leave = new AbortController();
    const begun = Promise.withResolvers<void>();
    const noting = (): ReturnType<typeof target> => {
      begun.resolve();
      return target();
    };
    const taking = takeIn(pool, framed(), { expected: { ...expected, target: noting }, signal: leave.signal });
    await begun.promise;
    leave.abort();
    await expect(taking).rejects.toMatchObject({ reason: "CANCELLED" });
  });

  it("starts nothing for a stream of another snapshot", async () => {
    const { pool, ends } = createReceiver(createManualClock(), "well");
    const other = { ...expected, guid: "1", target: () => Promise.reject(new Error("not asked")) };
    await expect(takeIn(pool, framed(), { expected: other, signal: NEVER })).rejects.toMatchObject({
      reason: "STREAM_DAMAGED",
    });
    expect(ends).toEqual([]);
  });
});
