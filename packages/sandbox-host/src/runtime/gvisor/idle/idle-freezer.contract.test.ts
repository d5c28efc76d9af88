import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, jest } from "@jest/globals";
import type { ContainerSpec } from "../../runtime.ts";
import { call, execSpec, ignoreOutput, run, sh, until } from "../../suite/harness.suite.ts";
import { readCgroupMounts } from "../container/cgroup.ts";
import { createGvisorRig } from "../gvisor-rig.suite.ts";
import { readStateFile } from "../container/state-file.ts";

const TEST_MS = 60_000;
const FREEZE_IDLE_AFTER_MS = 200;

describe("a container that is frozen while idle", () => {
  jest.setTimeout(TEST_MS);
  const rig = createGvisorRig({ freezeIdleAfterMs: FREEZE_IDLE_AFTER_MS }, TEST_MS);
  let container: ContainerSpec;

  /** By the kernel's own word. */
  const isFrozen = async (): Promise<boolean> => {
    const mount = (await readCgroupMounts()).find(({ version }) => version === 2)?.mountPoint ?? "";
    const events = await readFile(join(mount, "turnbox", container.id, "cgroup.events"), "utf8").catch(() => "");
    return events.includes("frozen 1");
  };
  const frozen = async (): Promise<void> => {
    await until(isFrozen);
  };
  const text = async (script: string): Promise<string> =>
    (await run(rig.runtime, container.id, sh(script))).stdout.toString().trim();
  const sentryPid = (): number =>
    readStateFile(join(rig.bench.stateDirectory, "runsc"), container.id)?.sandboxPid ?? Number.NaN;
  /** To the nanosecond: an idle sentry that is awake takes some of them every 400 µs. */
  const cpuTime = async (): Promise<bigint> => {
    const tasks = `/proc/${String(sentryPid())}/task`;
    const times = await Promise.all(
      (await readdir(tasks)).map((task) => readFile(join(tasks, task, "schedstat"), "utf8")),
    );
    return times.reduce((sum, text) => sum + BigInt(text.split(" ")[0] ?? 0), 0n);
  };

  beforeEach(async () => {
    container = await rig.bench.newContainer();
    await rig.runtime.start(container, call);
  }, TEST_MS);

  it("takes no processor time, answers for itself, and does the next call as if nothing had been", async () => {
    expect(await text("echo one")).toBe("one");
    await frozen();
    const before = await cpuTime();
    expect(await rig.runtime.liveness(container.id, call)).toBe("running");
    expect(await rig.runtime.processes(container.id, call)).toBe(0);
    expect(await rig.runtime.findDead([container.id], call)).toEqual([]);
    expect(await isFrozen()).toBe(true);
    expect(await cpuTime()).toBe(before);
    expect(await text("echo two")).toBe("two");
    await frozen();
    expect((await rig.runtime.stats(container.id, call)).memoryBytes).toBeGreaterThan(0);
  });

  it("is one with a network as well, and wakes as any other", async () => {
    const name = `turnbox-idle-${container.id.slice(0, 8)}`;
    execFileSync("ip", ["netns", "add", name]);
    try {
      await rig.runtime.stop(container.id, call);
      const network = { netnsPath: `/run/netns/${name}`, nameserver: "127.0.0.1" };
      container = { ...(await rig.bench.newContainer()), network };
      await rig.runtime.start(container, call);
      expect(await text("echo one")).toBe("one");
      await frozen();
      expect(await text("echo two")).toBe("two");
      await rig.runtime.stop(container.id, call);
    } finally {
      execFileSync("ip", ["netns", "delete", name]);
    }
  });

  it("is none while a command runs, or what one has left behind", async () => {
    const execution = ignoreOutput(
      await rig.runtime.exec(container.id, execSpec(sh("sleep 1; echo done > /workspace/a")), call),
    );
    expect(await execution.exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(await readFile(join(container.rootPath, "workspace/a"), "utf8")).toBe("done\n");
    await text("(sleep 1; echo later > /workspace/b) > /dev/null 2>&1 &");
    await until(async () => (await readFile(join(container.rootPath, "workspace/b"), "utf8").catch(() => "")) !== "");
  });

  it("stays paused, with its processes, and goes on when it is resumed", async () => {
    const sleeper = ignoreOutput(await rig.runtime.exec(container.id, execSpec(["sleep", "1000"]), call));
    await rig.runtime.pause(container.id, call);
    expect(await rig.runtime.liveness(container.id, call)).toBe("paused");
    await rig.runtime.resume(container.id, call);
    await sleeper.kill();
    expect(await sleeper.exit).toEqual({ kind: "killed" });
    await rig.runtime.pause(container.id, call);
    await frozen();
    expect(await rig.runtime.liveness(container.id, call)).toBe("paused");
    await rig.runtime.resume(container.id, call);
    expect(await text("echo hi")).toBe("hi");
  });

  it("is woken by a later service, and is ended while it is frozen", async () => {
    await frozen();
    await rig.runtime.close(call);
    await rig.reopen();
    expect(await isFrozen()).toBe(true);
    expect(await text("echo hi")).toBe("hi");
    await frozen();
    await rig.runtime.stop(container.id, call);
    expect(await rig.runtime.liveness(container.id, call)).toBe("gone");
  });

  it("is known to be dead when its sentry is killed", async () => {
    await frozen();
    process.kill(sentryPid(), "SIGKILL");
    await until(async () => (await rig.runtime.findDead([container.id], call)).length === 1);
    expect(await rig.runtime.liveness(container.id, call)).toBe("gone");
    await expect(rig.runtime.exec(container.id, execSpec(["true"]), call)).rejects.toThrow("does not run");
  });
});
