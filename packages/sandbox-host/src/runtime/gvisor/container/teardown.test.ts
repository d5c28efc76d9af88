import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import type { Cgroup } from "./cgroup.ts";
import { tearDown } from "./teardown.ts";

/** A group that nothing leaves, as with a process that waits for a hung filesystem. */
const BUSY: Cgroup = {
  pids: () => Promise.resolve([]),
  limit: () => Promise.resolve(),
  oomKills: () => Promise.resolve(0),
  usage: () => Promise.resolve({ cpuMs: undefined, memoryBytes: undefined }),
  remove: () => Promise.resolve("busy"),
};

describe("tearing a container down", () => {
  let runscRoot: string;
  beforeEach(async () => {
    runscRoot = await mkdtemp(join(tmpdir(), "teardown-"));
  });
  afterEach(async () => {
    await rm(runscRoot, { recursive: true });
  });

  const setup = (
    cgroup: Cgroup,
    {
      signal = new AbortController().signal,
      repairs = [],
    }: { readonly signal?: AbortSignal; readonly repairs?: number[] } = {},
  ) => {
    const clock = createManualClock();
    const request = {
      id: "abc",
      runscRoot,
      cgroup,
      sandboxId: "abc",
      cgroupPath: "/turnbox/abc",
      clock,
      signal,
      repair: async (deadlineMs: number): Promise<void> => {
        repairs.push(deadlineMs);
        await new Promise(() => undefined);
      },
    };
    const outcome = tearDown(request).then(
      () => "done",
      (thrown: unknown) => thrown,
    );
    let settled = false;
    void outcome.then(() => {
      settled = true;
    });
    const pass = async (seconds: number): Promise<void> => {
      // Files are read between the looks: real time has to pass as well.
      for (let ms = 0; ms < seconds * 1000 && !settled; ms += 50) {
        await clock.advance(50);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    return { outcome, repairs, pass };
  };

  it("is given up in less than 15 s where processes do not die and the repair hangs as well", async () => {
    const { outcome, repairs, pass } = setup(BUSY);
    await pass(15);
    expect(await Promise.race([outcome, Promise.resolve("still waiting")])).toMatchObject({
      reason: "RUNTIME_UNAVAILABLE",
      admitted: "unknown",
    });
    expect(repairs).toHaveLength(1);
  });

  it("ends with its caller's signal", async () => {
    const caller = new AbortController();
    const { outcome, pass } = setup(BUSY, { signal: caller.signal });
    await pass(1);
    caller.abort();
    expect(await outcome).toMatchObject({ name: "AbortError" });
  });

  it("is done where the repair has freed the last of it", async () => {
    const repairs: number[] = [];
    const repaired = {
      ...BUSY,
      remove: () => Promise.resolve<"busy" | "removed">(repairs.length === 0 ? "busy" : "removed"),
    };
    const { outcome, pass } = setup(repaired, { repairs });
    await pass(15);
    expect(await outcome).toBe("done");
  });
});
