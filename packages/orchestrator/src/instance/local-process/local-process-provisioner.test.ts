import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
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

/** Kills the host that runs and waits until its supervisor sleeps before the next start. */
async function kill(testbed: LocalTestbed, clock: ManualClock): Promise<void> {
  const last = (await starts(testbed)).at(-1);
  if (last === undefined) throw new Error("nothing was started");
  process.kill(last.pid, "SIGKILL");
  await until("the supervisor waits", async () => clock.sleeping > 0 && (await stateOf(testbed)) === "pending");
}

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
    await until("the host has begun", () => existsSync(join(testbed.home, "starts")) && clock.sleeping > 0);
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

  it("that die later are started again under the same id after a growing delay", async () => {
    const clock = createManualClock();
    let changes = 0;
    await using testbed = await createLocalTestbed({ clock, onChange: () => (changes += 1) });
    const before = await testbed.provisioner.launch(SPEC, CALL);
    const { pid } = (await starts(testbed))[0] ?? { pid: 0 };
    const seen = changes;
    await kill(testbed, clock);
    expect(changes).toBeGreaterThan(seen);
    expect(await testbed.provisioner.describe("local-1", CALL)).toMatchObject({
      state: "pending",
      url: undefined,
      problem: "the host was ended by SIGKILL",
      launchedAtMs: before.launchedAtMs,
    });
    await clock.advance(999);
    expect(await starts(testbed)).toHaveLength(1);
    await clock.advance(1);
    await until("it runs again", async () => (await stateOf(testbed)) === "running");
    expect((await starts(testbed))[1]?.pid).not.toBe(pid);

    await kill(testbed, clock);
    await clock.advance(1999);
    expect(await starts(testbed)).toHaveLength(2);
    await clock.advance(1);
    await until("it runs again", async () => (await stateOf(testbed)) === "running");
  });

  it("that fail to start again are tried on and on", async () => {
    const clock = createManualClock();
    await using testbed = await createLocalTestbed({ clock });
    await testbed.provisioner.launch(SPEC, CALL);
    await testbed.behave("fails");
    await kill(testbed, clock);
    await clock.advance(1000);
    await until(
      "the second start failed",
      async () => (await testbed.provisioner.describe("local-1", CALL)).problem === "no runsc",
    );
    await testbed.behave("serves");
    await until("the supervisor waits", () => clock.sleeping > 0);
    await clock.advance(2000);
    await until("it runs again", async () => (await stateOf(testbed)) === "running");
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
