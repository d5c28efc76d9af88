import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import type { ContainerSpec } from "../runtime.ts";
import { call, execSpec, ignoreOutput, reasonOf, type RuntimeHarness, run, until } from "./harness.suite.ts";

/** How containers come, freeze, die and go. */
export function lifecycleSuite(harnessOf: () => RuntimeHarness): void {
  const startNew = async (): Promise<ContainerSpec> => {
    const container = await harnessOf().newContainer();
    await harnessOf().runtime.start(container, call);
    return container;
  };
  const sizeOf = async ({ rootPath }: ContainerSpec): Promise<number> =>
    (await stat(join(rootPath, "workspace/count")).catch(() => ({ size: 0 }))).size;

  it("opens again and again and says its version", async () => {
    const { runtime } = harnessOf();
    const first = await runtime.open(call);
    expect(first.version).not.toBe("");
    expect(await runtime.open(call)).toEqual(first);
  });

  it("starts once, stops once, and takes a second time for done", async () => {
    const { runtime, programs } = harnessOf();
    const container = await harnessOf().newContainer();
    expect(await runtime.liveness(container.id, call)).toBe("gone");
    await Promise.all([runtime.start(container, call), runtime.start(container, call)]);
    const execution = ignoreOutput(await runtime.exec(container.id, execSpec(programs.counts("count")), call));
    await runtime.start(container, call);
    expect(await runtime.liveness(container.id, call)).toBe("running");
    const before = await sizeOf(container);
    await until(async () => (await sizeOf(container)) > before);
    await Promise.all([runtime.stop(container.id, call), runtime.stop(container.id, call)]);
    expect(await execution.exit).toEqual({ kind: "killed" });
    expect(await runtime.liveness(container.id, call)).toBe("gone");
    await runtime.stop(container.id, call);
    expect(await harnessOf().leftovers([container.id])).toEqual([]);
  });

  it("keeps the files of a container that is started again", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    await run(runtime, container.id, programs.writesFile("kept", "here"));
    await runtime.stop(container.id, call);
    await runtime.start(container, call);
    expect((await run(runtime, container.id, programs.printsFile("kept"))).stdout.toString()).toBe("here");
    await runtime.stop(container.id, call);
  });

  it("refuses a root that is not there", async () => {
    const { runtime } = harnessOf();
    const container = await harnessOf().newContainer();
    const rootless = { ...container, rootPath: `${container.rootPath}-missing` };
    expect(["INVALID_ARGUMENT", "STORAGE_UNAVAILABLE"]).toContain(await reasonOf(runtime.start(rootless, call)));
    expect(await runtime.list(call)).not.toContain(container.id);
  });

  it("does not start under a signal that was given already", async () => {
    const { runtime } = harnessOf();
    const container = await harnessOf().newContainer();
    await expect(runtime.start(container, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(await runtime.liveness(container.id, call)).toBe("gone");
  });

  it("does not stop under a signal that was given already", async () => {
    const { runtime } = harnessOf();
    const container = await startNew();
    const stopping = runtime.stop(container.id, { signal: AbortSignal.abort() });
    await expect(stopping).rejects.toMatchObject({ name: "AbortError" });
    expect(await runtime.liveness(container.id, call)).toBe("running");
    await runtime.stop(container.id, call);
  });

  it("has no container of an unknown name", async () => {
    const { runtime, programs } = harnessOf();
    const unknown = `u${randomBytes(8).toString("hex")}`;
    expect(await runtime.liveness(unknown, call)).toBe("gone");
    expect(await reasonOf(runtime.exec(unknown, execSpec(programs.waits()), call))).toBe("SANDBOX_LOST");
    expect(await reasonOf(runtime.pause(unknown, call))).toBe("SANDBOX_LOST");
    await runtime.stop(unknown, call);
  });

  it("freezes processes and lets them go on where they were", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    const execution = ignoreOutput(await runtime.exec(container.id, execSpec(programs.counts("count")), call));
    await until(async () => (await sizeOf(container)) > 3);
    await runtime.pause(container.id, call);
    await runtime.pause(container.id, call);
    expect(await runtime.liveness(container.id, call)).toBe("paused");
    await untilStill(container);
    const frozenAt = await sizeOf(container);
    expect(await reasonOf(runtime.exec(container.id, execSpec(programs.waits()), call))).toBe("INVALID_STATE");
    await delay(300);
    expect(await sizeOf(container)).toBe(frozenAt);
    await runtime.resume(container.id, call);
    await runtime.resume(container.id, call);
    expect(await runtime.liveness(container.id, call)).toBe("running");
    await until(async () => (await sizeOf(container)) > frozenAt + 3);
    await execution.kill();
    await runtime.stop(container.id, call);
  });

  it("ends a process of a paused container, which stays paused", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    const execution = ignoreOutput(await runtime.exec(container.id, execSpec(programs.waits()), call));
    await runtime.pause(container.id, call);
    await execution.kill();
    expect(await execution.exit).toEqual({ kind: "killed" });
    expect(await runtime.liveness(container.id, call)).toBe("paused");
    await runtime.stop(container.id, call);
    expect(await runtime.liveness(container.id, call)).toBe("gone");
  });

  it("finds containers again from a second instance, and works on in them", async () => {
    const { programs } = harnessOf();
    const container = await startNew();
    const second = harnessOf().reopen();
    await second.open(call);
    expect(await second.list(call)).toContain(container.id);
    expect(await second.liveness(container.id, call)).toBe("running");
    const { stdout } = await run(second, container.id, programs.prints({ stdout: "adopted", stderr: "", exitCode: 0 }));
    expect(stdout.toString()).toBe("adopted");
    await second.stop(container.id, call);
    expect(await harnessOf().runtime.liveness(container.id, call)).toBe("gone");
    expect(await harnessOf().runtime.list(call)).not.toContain(container.id);
  });

  const untilStill = async (container: ContainerSpec): Promise<void> => {
    let seen = -1;
    await until(async () => {
      const before = seen;
      await delay(100);
      seen = await sizeOf(container);
      return seen === before;
    });
  };
}

/** How the death of a sandbox shows. For runtimes whose sandboxes can die by themselves. */
export function crashSuite(harnessOf: () => RuntimeHarness & { crash(id: string): Promise<void> }): void {
  it("reports a dead sandbox as gone, lists it, and refuses to run in it", async () => {
    const { runtime, programs, crash } = harnessOf();
    const container = await harnessOf().newContainer();
    await runtime.start(container, call);
    const execution = ignoreOutput(await runtime.exec(container.id, execSpec(programs.waits()), call));
    expect(await runtime.findDead([container.id], call)).toEqual([]);
    await crash(container.id);
    expect(await execution.exit).toEqual({ kind: "sandbox_lost" });
    await until(async () => (await runtime.findDead([container.id], call)).length === 1);
    expect(await runtime.liveness(container.id, call)).toBe("gone");
    expect(await runtime.list(call)).toContain(container.id);
    expect(await reasonOf(runtime.exec(container.id, execSpec(programs.waits()), call))).toBe("SANDBOX_LOST");
    expect(await reasonOf(runtime.pause(container.id, call))).toBe("SANDBOX_LOST");
    await execution.kill();
  });

  it("starts a dead one again on the same files, and stops one that is dead", async () => {
    const { runtime, programs, crash } = harnessOf();
    const container = await harnessOf().newContainer();
    await runtime.start(container, call);
    await run(runtime, container.id, programs.writesFile("kept", "here"));
    await crash(container.id);
    await runtime.start(container, call);
    expect((await run(runtime, container.id, programs.printsFile("kept"))).stdout.toString()).toBe("here");
    await crash(container.id);
    await runtime.stop(container.id, call);
    expect(await runtime.list(call)).not.toContain(container.id);
    expect(await harnessOf().leftovers([container.id])).toEqual([]);
  });
}
