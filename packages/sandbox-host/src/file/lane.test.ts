import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { Lane, type LaneLimits } from "./lane.ts";
import type { WorkerProcess } from "./worker-process.ts";

interface FakeWorker extends WorkerProcess {
  readonly number: number;
  killed: boolean;
  /** Ends a killed worker. */
  die(): void;
}

const NO_SIGNAL = { signal: new AbortController().signal };

function laneOf(limits: Partial<LaneLimits> = {}) {
  const clock = createManualClock();
  const workers: FakeWorker[] = [];
  const start = (): Promise<WorkerProcess> => {
    const gone = Promise.withResolvers<null>();
    const worker: FakeWorker = {
      number: workers.length,
      pid: workers.length,
      killed: false,
      gone: gone.promise,
      die: () => {
        gone.resolve(null);
      },
      kill: () => {
        worker.killed = true;
      },
      send: () => Promise.resolve(),
      next: () => Promise.resolve(null),
      complaint: () => "",
      held: () => 0,
    };
    workers.push(worker);
    return Promise.resolve(worker);
  };
  const all = { warm: 2, usual: limits.max ?? 3, max: 3, maxWaiting: 4, ...limits };
  return { lane: new Lane(start, all, clock), workers, clock };
}

const reasonOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (thrown: unknown) => SandboxError.from(thrown).reason,
  );
const settled = async (): Promise<void> => {
  for (let n = 0; n < 20; n += 1) await Promise.resolve();
};

describe("the workers of a lane", () => {
  it("are taken at once only if one is free and no job would be refused", async () => {
    const { lane, workers } = laneOf({ max: 100, warm: 100, maxWaiting: 100 });
    expect(lane.free("a")).toBeUndefined();
    const leases = await Promise.all(Array.from({ length: 65 }, (_, n) => lane.take(String(n), NO_SIGNAL)));
    leases[0]?.release();
    const again = lane.free("a");
    expect(again?.worker).toBe(workers[0]);
    again?.release();
    // Killed, and not gone.
    for (const lease of leases.slice(1)) lease.discard();
    expect(lane.free("a")).toBeUndefined();
    expect(await reasonOf(lane.take("a", NO_SIGNAL))).toBe("STORAGE_UNAVAILABLE");
    for (const worker of workers) worker.die();
    await settled();
    expect(lane.free("a")).toBeUndefined();
    expect(lane.stats()).toMatchObject({ idle: 0, left: 0 });
  });

  it("are used again, and no more stay than are to be kept warm", async () => {
    const { lane, workers } = laneOf({ max: 4 });
    const first = await lane.take("a", NO_SIGNAL);
    first.release();
    const second = await lane.take("a", NO_SIGNAL);
    expect([workers.length, second.worker]).toEqual([1, first.worker]);
    const others = await Promise.all([lane.take("a", NO_SIGNAL), lane.take("b", NO_SIGNAL)]);
    for (const lease of [second, ...others]) lease.release();
    expect(lane.stats()).toMatchObject({ idle: 2, busy: 0, left: 1 });
  });

  it("are left for other keys if one key asks for all", async () => {
    const { lane } = laneOf();
    const hungry = Array.from({ length: 4 }, () => lane.take("hungry", NO_SIGNAL));
    await settled();
    expect(lane.stats()).toMatchObject({ busy: 2, waiting: 2 });
    const other = await lane.take("other", NO_SIGNAL);
    expect(lane.stats().busy).toBe(3);
    other.release();
    for (const lease of await Promise.all(hungry.slice(0, 2))) lease.release();
    for (const lease of await Promise.all(hungry.slice(2))) lease.release();
    expect(lane.stats()).toMatchObject({ busy: 0, waiting: 0 });
  });

  it("that do not end when they are killed are counted as left, and replaced", async () => {
    const { lane, workers } = laneOf();
    for (let n = 0; n < 10; n += 1) (await lane.take("a", NO_SIGNAL)).discard();
    expect(workers.every(({ killed }) => killed)).toBe(true);
    expect(lane.stats()).toMatchObject({ busy: 0, left: 10 });
    workers[0]?.die();
    await settled();
    expect(lane.stats().left).toBe(9);
    for (let n = 0; n < 55; n += 1) (await lane.take("a", NO_SIGNAL)).discard();
    expect(await reasonOf(lane.take("a", NO_SIGNAL))).toBe("STORAGE_UNAVAILABLE");
  });

  it("refuse jobs beyond those that may wait, and forget one whose caller leaves", async () => {
    const { lane } = laneOf({ max: 1, maxWaiting: 3 });
    const first = await lane.take("a", NO_SIGNAL);
    const leave = new AbortController();
    const waiting = reasonOf(lane.take("a", { signal: leave.signal }));
    expect(await reasonOf(lane.take("a", NO_SIGNAL))).toBe("OVERLOADED");
    leave.abort();
    expect(await waiting).toBe("CANCELLED");
    first.release();
    expect(lane.stats()).toMatchObject({ busy: 0, waiting: 0, idle: 1 });
  });

  it("are more than usual only after a job has waited, and go to the key that holds least", async () => {
    const { lane, workers, clock } = laneOf({ warm: 0, usual: 2, max: 16, maxWaiting: 100 });
    const hungry = Array.from({ length: 9 }, () => lane.take("hungry", NO_SIGNAL));
    await settled();
    expect(lane.stats()).toMatchObject({ busy: 2, waiting: 7 });
    const other = lane.take("other", NO_SIGNAL);
    await clock.advance(99);
    expect(workers).toHaveLength(2);
    await clock.advance(1);
    await settled();
    expect((await other).worker).toBe(workers[2]);
    for (let moment = 0; moment < 10; moment += 1) await clock.advance(100).then(settled);
    // Half of them, less what the other one has.
    expect(lane.stats()).toMatchObject({ busy: 9, waiting: 1 });
    (await other).release();
    for (const lease of hungry) (await lease).release();
    expect(lane.stats()).toMatchObject({ busy: 0, waiting: 0 });
  });

  it("are waited for by each key within its share of the queue", async () => {
    const { lane } = laneOf({ max: 2, maxWaiting: 8 });
    const hungry = Array.from({ length: 10 }, () => reasonOf(lane.take("hungry", NO_SIGNAL)));
    await settled();
    expect(lane.stats()).toMatchObject({ busy: 1, waiting: 4 });
    expect((await Promise.all(hungry.slice(5))).every((reason) => reason === "OVERLOADED")).toBe(true);
    const other = await lane.take("other", NO_SIGNAL);
    other.release();
  });

  it("end with the lane, and so do the jobs that wait", async () => {
    const { lane, workers } = laneOf({ max: 1 });
    await lane.take("a", NO_SIGNAL);
    const waiting = reasonOf(lane.take("a", NO_SIGNAL));
    const closing = lane[Symbol.asyncDispose]();
    for (const worker of workers) worker.die();
    await closing;
    expect([await waiting, await reasonOf(lane.take("a", NO_SIGNAL))]).toEqual(["SHUTTING_DOWN", "SHUTTING_DOWN"]);
    expect(workers.every(({ killed }) => killed)).toBe(true);
  });
});
