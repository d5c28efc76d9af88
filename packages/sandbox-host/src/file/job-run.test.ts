import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { createDeadline, SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { createFrameReader, encodeFrame, type FromWorker } from "./frame.ts";
import { type JobRun, startJob } from "./job-run.ts";
import type { Lease } from "./lane.ts";

const JOB = { kind: "job", name: "stat", root: "/", device: null, input: null, body: "none" } as const;
const DONE = encodeFrame({ kind: "done", output: 1, body: "none" });

/** A job on a worker that sends these bytes, and what becomes of the worker. */
function begin(bytes: Buffer, ending: "open" | "ends" | "breaks" = "open") {
  const stream = new PassThrough();
  const { next, held, end } = createFrameReader(stream);
  const fate: string[] = [];
  const lease: Lease = {
    worker: {
      pid: 1,
      gone: new Promise(() => undefined),
      send: () => Promise.resolve(),
      next,
      held,
      kill: end,
      complaint: () => "it complains",
    },
    release: () => void fate.push("released"),
    discard: () => void fate.push("discarded"),
  };
  const run: JobRun<unknown> = startJob(lease, JOB, {
    deadline: createDeadline({ clock: createManualClock(), ms: 1000 }),
    body: undefined,
  });
  stream.write(bytes);
  if (ending === "ends") stream.end();
  if (ending === "breaks") stream.destroy(new Error("read EIO"));
  return { run, fate };
}

const reasonOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (thrown: unknown) => (thrown instanceof SandboxError ? thrown.reason : `not one of ours: ${String(thrown)}`),
  );
const framed = (head: unknown): Buffer => encodeFrame(head as FromWorker);

describe("a job on a worker", () => {
  it("releases a worker that has sent its output", async () => {
    const { run, fate } = begin(DONE);
    expect([await run.next(), run.output, fate]).toEqual([null, 1, ["released"]]);
  });

  it.each([
    ["garbage", Buffer.from("\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000<htm")],
    ["a frame that is longer than the limit", Buffer.alloc(64, 0xff)],
    ["a head that is no object", framed(null)],
    ["a head that is a list", framed([1])],
    ["an unknown kind", framed({ kind: "toString" })],
    ["a second ready frame", framed({ kind: "ready" })],
    ["an unknown reason", framed({ kind: "failed", reason: "__proto__x", message: "", metadata: {}, detail: "" })],
    ["no reason", framed({ kind: "failed" })],
  ])("fails alone if its worker sends %s, and ends the worker", async (_, bytes) => {
    const { run, fate } = begin(bytes);
    expect(await reasonOf(run.next())).toBe("INTERNAL");
    expect(fate).toEqual(["discarded"]);
  });

  it.each(["ends", "breaks"] as const)("fails alone if the stream of its worker %s in a frame", async (ending) => {
    const { run, fate } = begin(DONE.subarray(0, 10), ending);
    expect(await reasonOf(run.next())).toBe("INTERNAL");
    expect(fate).toEqual(["discarded"]);
  });

  it("does not release a worker that has sent more than its output", async () => {
    const { run, fate } = begin(Buffer.concat([DONE, DONE]));
    expect([await run.next(), run.output, fate]).toEqual([null, 1, ["discarded"]]);
  });
});
