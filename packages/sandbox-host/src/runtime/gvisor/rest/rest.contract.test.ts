import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type Aide, createAide, createChildCommandRunner } from "@turnbox/core";
import type { ContainerSpec, Runtime } from "../../runtime.ts";
import { call, execSpec, ignoreOutput, run, sh, until } from "../../suite/harness.suite.ts";
import { createWorkbench, processesNaming, type Workbench } from "../../suite/host-harness.suite.ts";
import { readCgroupMounts } from "../cgroup.ts";
import { createGvisorRuntime } from "../gvisor-runtime.ts";
import { readStateFile } from "../state-file.ts";

const TEST_MS = 60_000;
const REST_AFTER_MS = 200;

describe("a container that rests", () => {
  jest.setTimeout(TEST_MS);
  let aide: Aide;
  let bench: Workbench;
  let runtime: Runtime;
  let container: ContainerSpec;

  const open = async (): Promise<Runtime> => {
    const runner = createChildCommandRunner({ aide });
    const { stateDirectory } = bench;
    const opened = createGvisorRuntime({ runner, aide, stateDirectory, restAfterMs: REST_AFTER_MS });
    await opened.open(call);
    return opened;
  };
  /** By the kernel's own word. */
  const isFrozen = async (): Promise<boolean> => {
    const mount = (await readCgroupMounts()).find(({ version }) => version === 2)?.mountPoint ?? "";
    const events = await readFile(join(mount, "turnbox", container.id, "cgroup.events"), "utf8").catch(() => "");
    return events.includes("frozen 1");
  };
  const rested = async (): Promise<void> => {
    await until(isFrozen);
  };
  const text = async (script: string): Promise<string> =>
    (await run(runtime, container.id, sh(script))).stdout.toString().trim();
  const sentryPid = async (): Promise<number> =>
    (await readStateFile(join(bench.stateDirectory, "runsc"), container.id))?.sandboxPid ?? Number.NaN;
  const cpuTicks = async (): Promise<number> => {
    const stat = await readFile(`/proc/${String(await sentryPid())}/stat`, "utf8");
    const [user, system] = (stat.split(") ")[1] ?? "").split(" ").slice(11, 13).map(Number);
    return (user ?? 0) + (system ?? 0);
  };

  beforeAll(async () => {
    aide = createAide();
    bench = await createWorkbench();
  }, TEST_MS);
  beforeEach(async () => {
    runtime = await open();
    container = await bench.newContainer();
    await runtime.start(container, call);
  }, TEST_MS);
  afterEach(async () => {
    for (const id of await runtime.list(call)) await runtime.stop(id, call);
    await runtime.close(call);
    expect(await processesNaming([bench.stateDirectory])).toEqual([]);
  }, TEST_MS);
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
    aide[Symbol.dispose]();
  }, TEST_MS);

  it("takes no processor time, answers for itself, and does the next call as if nothing had been", async () => {
    expect(await text("echo one")).toBe("one");
    await rested();
    const before = await cpuTicks();
    expect(await runtime.liveness(container.id, call)).toBe("running");
    expect(await runtime.processes(container.id, call)).toBe(0);
    expect(await runtime.findDead([container.id], call)).toEqual([]);
    expect(await isFrozen()).toBe(true);
    expect(await cpuTicks()).toBe(before);
    expect(await text("echo two")).toBe("two");
    await rested();
    expect((await runtime.stats(container.id, call)).memoryBytes).toBeGreaterThan(0);
  });

  it("is none while a command runs, or what one has left behind", async () => {
    const execution = ignoreOutput(
      await runtime.exec(container.id, execSpec(sh("sleep 1; echo done > /workspace/a")), call),
    );
    expect(await execution.exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(await readFile(join(container.rootPath, "workspace/a"), "utf8")).toBe("done\n");
    await text("(sleep 1; echo later > /workspace/b) > /dev/null 2>&1 &");
    await until(async () => (await readFile(join(container.rootPath, "workspace/b"), "utf8").catch(() => "")) !== "");
  });

  it("stays paused, with its processes, and goes on when it is resumed", async () => {
    const sleeper = ignoreOutput(await runtime.exec(container.id, execSpec(["sleep", "1000"]), call));
    await runtime.pause(container.id, call);
    expect(await runtime.liveness(container.id, call)).toBe("paused");
    await runtime.resume(container.id, call);
    await sleeper.kill();
    expect(await sleeper.exit).toEqual({ kind: "killed" });
    await runtime.pause(container.id, call);
    await rested();
    expect(await runtime.liveness(container.id, call)).toBe("paused");
    await runtime.resume(container.id, call);
    expect(await text("echo hi")).toBe("hi");
  });

  it("is woken by a later service, and is ended where it rests", async () => {
    await rested();
    await runtime.close(call);
    runtime = await open();
    expect(await isFrozen()).toBe(true);
    expect(await text("echo hi")).toBe("hi");
    await rested();
    await runtime.stop(container.id, call);
    expect(await runtime.liveness(container.id, call)).toBe("gone");
  });

  it("is known to be dead when somebody kills it", async () => {
    await rested();
    process.kill(await sentryPid(), "SIGKILL");
    await until(async () => (await runtime.findDead([container.id], call)).length === 1);
    expect(await runtime.liveness(container.id, call)).toBe("gone");
    await expect(runtime.exec(container.id, execSpec(["true"]), call)).rejects.toThrow("does not run");
  });
});
