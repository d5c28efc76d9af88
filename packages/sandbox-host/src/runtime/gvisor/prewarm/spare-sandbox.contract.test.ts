import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { identifyProcess } from "@turnbox/core";
import type { ContainerSpec } from "../../runtime.ts";
import { call, execSpec, ignoreOutput, run, sh, until } from "../../suite/harness.suite.ts";
import { readCgroupMounts } from "../container/cgroup.ts";
import { createGvisorRig } from "../gvisor-rig.suite.ts";
import { createLayout, sandboxNote } from "../container/layout.ts";
import { readStateFile } from "../container/state-file.ts";

const TEST_MS = 60_000;
const MIB = 1024 * 1024;

/** Containers that are booted in sandboxes that were spares, with everything that touches where a container is. */
describe("a container in a spare", () => {
  jest.setTimeout(TEST_MS);
  const rig = createGvisorRig({ spareSandbox: "one", waitingShells: 0 }, TEST_MS);
  const layout = () => createLayout(rig.bench.stateDirectory);
  const spares = async (): Promise<readonly string[]> => await readdir(layout().sparesDirectory).catch(() => []);
  const start = async (limits: ContainerSpec["limits"] = {}): Promise<ContainerSpec> => {
    const spec = await rig.bench.newContainer(limits);
    rig.runtime.prewarm?.hurry(spec.id);
    await rig.runtime.start(spec, call);
    return spec;
  };
  const isBooted = (id: string): boolean => readStateFile(layout().runscRoot, id)?.status === "running";
  /** One whose sandbox is not of its own name. */
  const startInSpare = async (limits: ContainerSpec["limits"] = {}): Promise<ContainerSpec & { sandboxId: string }> => {
    const first = await start(limits);
    await until(async () => (await spares()).length === 1 && isBooted((await spares())[0] ?? ""));
    const [standing = ""] = await spares();
    // On record as booted a moment before it stands by.
    let container: ContainerSpec | undefined;
    await until(async () => {
      container = await start(limits);
      if ((await readFile(sandboxNote(layout(), container.id), "utf8").catch(() => "")) === standing) return true;
      await rig.runtime.stop(container.id, call);
      return false;
    });
    await rig.runtime.stop(first.id, call);
    if (container === undefined) throw new Error("no container");
    return { ...container, sandboxId: standing };
  };
  const text = async (id: string, script: string): Promise<string> =>
    (await run(rig.runtime, id, sh(script))).stdout.toString().trim();

  // After the hook of the rig, which stops every container and closes every runtime.
  afterEach(async () => {
    expect(await spares()).toEqual([]);
    expect(await readdir(layout().runscRoot)).toEqual([]);
  }, TEST_MS);

  it("sees its own files, processes and name, and nothing of the sandbox's", async () => {
    const { id, rootPath } = await startInSpare();
    expect(
      await text(id, "echo kept > /workspace/a; hostname; ls /busybox 2>&1; cat /proc/1/cmdline | tr '\\0' ' '"),
    ).toMatch(/^test\nls: .*No such file or directory\n\/run\/turnbox\/busybox sh -c /);
    expect(await readFile(join(rootPath, "workspace/a"), "utf8")).toBe("kept\n");
    expect(await rig.runtime.processes(id, call)).toBe(0);
    expect(await rig.runtime.list(call)).toEqual([id]);
  });

  it("is paused, resumed, asked, counted and bound as any other", async () => {
    const { id } = await startInSpare();
    const sleeper = ignoreOutput(await rig.runtime.exec(id, execSpec(["sleep", "1000"]), call));
    expect(await rig.runtime.processes(id, call)).toBe(1);
    await rig.runtime.pause(id, call);
    expect(await rig.runtime.liveness(id, call)).toBe("paused");
    await rig.runtime.resume(id, call);
    expect(await rig.runtime.liveness(id, call)).toBe("running");
    await rig.runtime.limit(id, { memoryBytes: 64 * MIB }, call);
    expect((await rig.runtime.stats(id, call)).memoryBytes).toBeGreaterThan(MIB);
    await sleeper.kill();
    expect(await sleeper.exit).toEqual({ kind: "killed" });
    expect(await text(id, "echo still here")).toBe("still here");
  });

  it("takes its sandbox with it when it ends, and the sandbox's cgroup", async () => {
    const { id, sandboxId } = await startInSpare();
    await rig.runtime.stop(id, call);
    expect(await rig.runtime.liveness(id, call)).toBe("gone");
    const groups = await Promise.all(
      (await readCgroupMounts()).map(({ mountPoint }) => readdir(join(mountPoint, "turnbox")).catch(() => [])),
    );
    expect(groups.flat().filter((name) => name === id || name === sandboxId)).toEqual([]);
  });

  it("dies with its sandbox, and is reported as out of memory if it was", async () => {
    const { id } = await startInSpare({ memoryBytes: 48 * MIB });
    const { exit } = await run(rig.runtime, id, sh("dd if=/dev/zero of=/dev/shm/hog bs=1M count=60; sleep 1000"));
    expect(exit).toEqual({ kind: "oom" });
    expect(await rig.runtime.liveness(id, call)).toBe("gone");
    expect(await rig.runtime.findDead([id], call)).toEqual([id]);
  });

  it("is lost with its gofer, though the sandbox itself needs none", async () => {
    const { id, sandboxId } = await startInSpare();
    const state = readStateFile(layout().runscRoot, id, sandboxId);
    process.kill(state?.goferPid ?? Number.NaN, "SIGKILL");
    await until(async () => (await rig.runtime.findDead([id], call)).length === 1);
    expect(await rig.runtime.liveness(id, call)).toBe("gone");
  });

  it("is found again by a later service, which ends what stood by for the one before", async () => {
    const { id, sandboxId } = await startInSpare();
    const state = readStateFile(layout().runscRoot, id, sandboxId);
    await until(async () => (await spares()).some((name) => name !== sandboxId));
    await rig.reopen();
    expect(await spares()).toEqual([sandboxId]);
    expect(await rig.runtime.list(call)).toEqual([id]);
    expect(await rig.runtime.liveness(id, call)).toBe("running");
    expect(await text(id, "echo hi")).toBe("hi");
    expect(identifyProcess(state?.sandboxPid ?? 0)).toBeDefined();
  });

  it("stays when what stood by for a service that died is ended, by one that was not opened", async () => {
    const { id, sandboxId } = await startInSpare();
    await until(async () => {
      const standing = (await spares()).find((name) => name !== sandboxId);
      return standing !== undefined && isBooted(standing);
    });
    await rig.create().close(call);
    expect(await spares()).toEqual([sandboxId]);
    expect(await text(id, "echo hi")).toBe("hi");
  });

  it("is booted in one of its own where the one that stood by has died", async () => {
    const first = await start();
    await until(async () => (await spares()).length === 1 && isBooted((await spares())[0] ?? ""));
    const [standing = ""] = await spares();
    process.kill(readStateFile(layout().runscRoot, standing)?.sandboxPid ?? Number.NaN, "SIGKILL");
    const second = await start();
    expect(await text(second.id, "echo hi")).toBe("hi");
    await rig.runtime.stop(first.id, call);
  });
});
