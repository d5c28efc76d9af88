import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import type { Machine } from "../provisioner.ts";
import { createLocalTestbed, type LocalTestbed } from "./fake-host.suite.ts";

const CALL = { signal: new AbortController().signal };
const SPEC = { instanceId: "local-1", tags: { fleet: "f1" } };
const PATIENCE_MS = 10_000;

interface Start {
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly pid: number;
}

/** A line that is still being written is not one yet. */
const starts = async ({ home }: LocalTestbed): Promise<readonly Start[]> =>
  (await readFile(join(home, "starts"), "utf8"))
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Start);

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const stateOf = async ({ provisioner }: LocalTestbed): Promise<string> =>
  (await provisioner.describe("local-1", CALL)).state;

/** Kills the host that runs. */
async function kill(testbed: LocalTestbed): Promise<void> {
  const last = (await starts(testbed)).at(-1);
  if (last === undefined) throw new Error("nothing was started");
  process.kill(last.pid, "SIGKILL");
}

const isUpAgain = async (testbed: LocalTestbed, times: number): Promise<void> => {
  await until(
    "it runs again",
    async () => (await starts(testbed)).length === times && (await stateOf(testbed)) === "running",
  );
};

describe("local-process hosts", () => {
  it("are given a home, an id, a place of their own, and nothing of our environment but what they need", async () => {
    await using testbed = await createLocalTestbed();
    const machine = await testbed.provisioner.launch(SPEC, CALL);
    const [start] = await starts(testbed);
    const data = join(testbed.home, "hosts", "local-1");
    expect(start?.args).toEqual([
      "serve",
      "--home",
      testbed.home,
      "--instance",
      "local-1",
      "--data-dir",
      data,
      "--port",
      "0",
      "--heartbeat",
    ]);
    expect(start?.env).toEqual(["PATH", "TURNBOX_POOL_SIZE"]);
    expect(machine).toMatchObject({ state: "running", url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(await readFile(join(testbed.home, "logs", "host-local-1.log"), "utf8")).toContain("hello from local-1");
  });

  it("that say why they cannot start fail the launch with their reason and remedy, and are forgotten", async () => {
    await using testbed = await createLocalTestbed();
    await testbed.behave("fails");
    await expect(testbed.provisioner.launch(SPEC, CALL)).rejects.toMatchObject({
      reason: "RUNTIME_UNAVAILABLE",
      message: "no runsc",
      metadata: { remedy: "install runsc" },
    });
    expect(await testbed.provisioner.list({ tags: SPEC.tags, states: [] }, CALL)).toEqual([]);
    await testbed.behave("serves");
    expect(await testbed.provisioner.launch(SPEC, CALL)).toMatchObject({ state: "running" });
  });

  it("that die, or speak another language, fail the launch and point to their log", async () => {
    await using testbed = await createLocalTestbed();
    await testbed.behave("dies");
    await expect(testbed.provisioner.launch(SPEC, CALL)).rejects.toMatchObject({
      reason: "HOST_UNREACHABLE",
      message: expect.stringMatching(/exited with code 7.*host-local-1\.log/),
    });
    await testbed.behave("babbles");
    await expect(testbed.provisioner.launch(SPEC, CALL)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
  });

  it("that say nothing are given up and ended at the deadline", async () => {
    const clock = createManualClock();
    await using testbed = await createLocalTestbed({ clock });
    await testbed.behave("silent");
    const launch = testbed.provisioner.launch(SPEC, CALL);
    launch.catch(() => undefined);
    await until(
      "the host has begun",
      async () => existsSync(join(testbed.home, "starts")) && (await starts(testbed)).length === 1,
    );
    await clock.advance(10_000);
    await expect(launch).rejects.toMatchObject({ message: expect.stringContaining("did not announce itself") });
    const [start] = await starts(testbed);
    await until("the host is ended", () => !isAlive(start?.pid ?? 0));
  });

  it("D28: are launched once for several callers, and on when the first of them leaves", async () => {
    await using testbed = await createLocalTestbed();
    const leaving = new AbortController();
    const first = testbed.provisioner.launch(SPEC, { signal: leaving.signal });
    const second = testbed.provisioner.launch(SPEC, CALL);
    leaving.abort(new Error("gone home"));
    await expect(first).rejects.toThrow("gone home");
    expect(await second).toMatchObject({ state: "running" });
    expect(await starts(testbed)).toHaveLength(1);
  });

  it("that had come up and die are started again at once under the same id, however often", async () => {
    const clock = createManualClock();
    const seen: Machine[] = [];
    const testbed = await createLocalTestbed({
      clock,
      onChange: () => void testbed.provisioner.describe("local-1", CALL).then((machine) => seen.push(machine)),
    });
    await using _testbed = testbed;
    const before = await testbed.provisioner.launch(SPEC, CALL);
    for (let times = 1; times <= 10; times += 1) {
      seen.length = 0;
      await kill(testbed);
      await isUpAgain(testbed, times + 1);
      // Meanwhile it is on its way, and nothing is wrong with it.
      expect(seen[0]).toMatchObject({
        state: "pending",
        url: undefined,
        problem: undefined,
        launchedAtMs: before.launchedAtMs,
      });
    }
    expect(clock.monotonicMs()).toBe(0);
    expect(new Set((await starts(testbed)).map(({ pid }) => pid)).size).toBe(11);
  });

  it("fault 34: whose event loop stands still for 10 s are ended and started again", async () => {
    const clock = createManualClock();
    await using testbed = await createLocalTestbed({ clock });
    await testbed.behave("freezes");
    await testbed.provisioner.launch(SPEC, CALL);
    const [frozen] = await starts(testbed);
    await until("it stands still", () => existsSync(join(testbed.home, "frozen")));
    await testbed.behave("serves");
    await clock.advance(9000);
    expect(isAlive(frozen?.pid ?? 0)).toBe(true);
    await clock.advance(2000);
    await isUpAgain(testbed, 2);
    expect(isAlive(frozen?.pid ?? 0)).toBe(false);
  });

  it("that fail to start again are tried on and on, after a growing delay, until they have come up", async () => {
    const clock = createManualClock();
    await using testbed = await createLocalTestbed({ clock, readyTimeoutMs: 1_000_000_000 });
    await testbed.provisioner.launch(SPEC, CALL);
    await testbed.behave("fails");
    await kill(testbed);
    const isTried = async (times: number): Promise<boolean> => (await starts(testbed)).length >= times;
    const isKnown = async () => (await testbed.provisioner.describe("local-1", CALL)).problem === "no runsc";
    const triedAfterMs = async (times: number): Promise<number> => {
      const fromMs = clock.monotonicMs();
      await until("it is tried again", async () => {
        await clock.advance(100);
        return await isTried(times);
      });
      return clock.monotonicMs() - fromMs;
    };
    await until("the start failed", isKnown);
    expect(await isTried(3)).toBe(false);
    expect(await triedAfterMs(3)).toBeGreaterThanOrEqual(1000);
    expect(await triedAfterMs(4)).toBeGreaterThanOrEqual(2000);
    await testbed.behave("serves");
    expect(await triedAfterMs(5)).toBeGreaterThanOrEqual(5000);
    await until("it runs again", async () => (await stateOf(testbed)) === "running");
    expect(await testbed.provisioner.describe("local-1", CALL)).toMatchObject({ problem: undefined });
    await kill(testbed);
    await isUpAgain(testbed, 6);
  });

  it("are asked to end, and those that do not are ended", async () => {
    await using testbed = await createLocalTestbed({ stopTimeoutMs: 300 });
    await testbed.behave("stubborn");
    await testbed.provisioner.launch(SPEC, CALL);
    const [start] = await starts(testbed);
    await testbed.provisioner.stop("local-1", CALL);
    expect(existsSync(join(testbed.home, "asked"))).toBe(true);
    expect(isAlive(start?.pid ?? 0)).toBe(false);
  });

  it("all end with the provisioner", async () => {
    await using testbed = await createLocalTestbed();
    await testbed.provisioner.launch(SPEC, CALL);
    await testbed.provisioner.launch({ ...SPEC, instanceId: "local-2" }, CALL);
    await testbed.provisioner[Symbol.asyncDispose]();
    for (const { pid } of await starts(testbed)) expect(isAlive(pid)).toBe(false);
  });
});
