import { describe, expect, it } from "@jest/globals";
import { type CommandRunner, type RunSpec, SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { createBoundedCommandRunner } from "./bounded-command-runner.ts";

const RESULT = { exitCode: 0, stdout: "", stderr: "", droppedBytes: 0 };

function rig(bound: number) {
  const clock = createManualClock();
  const running: { readonly spec: RunSpec; readonly end: () => void }[] = [];
  let most = 0;
  let now = 0;
  const inner: CommandRunner = {
    start: () => Promise.reject(new Error("not used")),
    run: async (spec) => {
      most = Math.max(most, ++now);
      const { promise, resolve } = Promise.withResolvers<undefined>();
      running.push({
        spec,
        end: () => {
          resolve(undefined);
        },
      });
      await promise;
      now -= 1;
      return RESULT;
    },
  };
  const runner = createBoundedCommandRunner(inner, { bounds: { zfs: bound }, clock });
  const run = (command: string, deadlineMs = 1000, signal?: AbortSignal) =>
    runner.run({ command, args: [], deadlineMs }, signal && { signal });
  return { clock, running, run, most: () => most };
}

const settled = async (): Promise<void> => {
  for (let count = 0; count < 20; count += 1) await Promise.resolve();
};
const reasonOf = (thrown: unknown): string => SandboxError.from(thrown).reason;

describe("a runner with bounds", () => {
  it("runs only so many of a kind at once, in the order of asking, and all of them in the end", async () => {
    const { running, run, most } = rig(3);
    const all = Array.from({ length: 768 }, () => run("/sbin/zfs"));
    for (let ended = 0; ended < 768; ended += 1) {
      await settled();
      running[ended]?.end();
    }
    expect(await Promise.all(all)).toHaveLength(768);
    expect([running.length, most()]).toEqual([768, 3]);
  });

  it("does not hold up another kind, which has no bound", async () => {
    const { running, run } = rig(1);
    void run("zfs");
    void run("zfs");
    const others = Array.from({ length: 50 }, () => run("nft"));
    await settled();
    expect(running).toHaveLength(51);
    for (const { end } of running) end();
    await Promise.all(others);
  });

  it("counts the wait for the deadline, and refuses what could not begin by then", async () => {
    const { clock, running, run } = rig(1);
    const first = run("zfs", 60_000);
    const second = run("zfs", 1000);
    const third = run("zfs", 500).catch(reasonOf);
    await clock.advance(600);
    expect(await third).toBe("OVERLOADED");
    running[0]?.end();
    await first;
    await settled();
    expect(running[1]?.spec.deadlineMs).toBe(400);
    running[1]?.end();
    await second;
    expect(clock.sleeping).toBe(0);
  });

  it("lets a caller go that does not want to wait any more, and gives its turn to the next", async () => {
    const { running, run } = rig(1);
    const first = run("zfs");
    const over = new AbortController();
    const second = run("zfs", 1000, over.signal).catch(reasonOf);
    const third = run("zfs");
    await settled();
    over.abort();
    expect(await second).toBe("CANCELLED");
    running[0]?.end();
    await first;
    await settled();
    expect(running).toHaveLength(2);
    running[1]?.end();
    await third;
  });
});
