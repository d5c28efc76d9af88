import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import type { ContainerSpec } from "../runtime.ts";
import {
  call,
  countProcesses,
  execSpec,
  finish,
  ignoreOutput,
  type RuntimeHarness,
  type RuntimeTraits,
  run,
  sh,
  until,
} from "./harness.suite.ts";

/** What a service does with the executions of one that died: here, of another instance over the same state. */
export function quiesceSuite(harnessOf: () => RuntimeHarness, traits: RuntimeTraits): void {
  const startNew = async (): Promise<ContainerSpec> => {
    const container = await harnessOf().newContainer();
    await harnessOf().runtime.start(container, call);
    return container;
  };
  const sizeOf = async ({ rootPath }: ContainerSpec, name: string): Promise<number> =>
    (await stat(join(rootPath, "workspace", name)).catch(() => ({ size: 0 }))).size;

  it("ends executions of an earlier instance, once and again", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    const orphan = ignoreOutput(await runtime.exec(container.id, execSpec(programs.counts("count")), call));
    await until(async () => (await sizeOf(container, "count")) > 0);
    const second = harnessOf().reopen();
    await second.open(call);
    expect(await second.liveness(container.id, call)).toBe("running");
    await second.quiesce(container.id, call);
    const endedAt = await sizeOf(container, "count");
    expect((await orphan.exit).kind).not.toBe("timed_out");
    expect(await sizeOf(container, "count")).toBe(endedAt);
    await second.quiesce(container.id, call);
    const { stdout } = await run(second, container.id, programs.prints({ stdout: "on", stderr: "", exitCode: 0 }));
    expect(stdout.toString()).toBe("on");
    await second.stop(container.id, call);
    expect(await harnessOf().leftovers([container.id])).toEqual([]);
  });

  it("leaves its own executions alone", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    const own = await runtime.exec(container.id, execSpec(programs.copiesInput()), call);
    await runtime.quiesce(container.id, call);
    const { stdout, exit } = await finish(own, "still here");
    expect(stdout.toString()).toBe("still here");
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
    await runtime.stop(container.id, call);
  });

  it("has nothing to do in a container that is gone, or was never there", async () => {
    const { runtime } = harnessOf();
    const container = await startNew();
    await runtime.stop(container.id, call);
    await runtime.quiesce(container.id, call);
    expect(await harnessOf().leftovers([container.id])).toEqual([]);
  });

  it("leaves a paused container paused", async () => {
    const { runtime, programs } = harnessOf();
    const container = await startNew();
    const orphan = ignoreOutput(await runtime.exec(container.id, execSpec(programs.waits()), call));
    await runtime.pause(container.id, call);
    const second = harnessOf().reopen();
    await second.quiesce(container.id, call);
    expect((await orphan.exit).kind).not.toBe("timed_out");
    expect(await second.liveness(container.id, call)).toBe("paused");
    await second.stop(container.id, call);
  });

  if (traits.shell === "no") return;

  it("ends all that such an execution has started, and lets the background of one that had exited live on", async () => {
    const { runtime } = harnessOf();
    const container = await startNew();
    const { id } = container;
    const left = await run(runtime, id, sh("setsid sleep 9000001 > /dev/null 2>&1 & exit 0"));
    expect(left.exit).toEqual({ kind: "exited", exitCode: 0 });
    const tree = "setsid sleep 9000002 & (sleep 9000002 &) ; sleep 9000002";
    const orphan = ignoreOutput(await runtime.exec(id, execSpec(sh(tree)), call));
    // One that cleared its environment is known by its pid alone.
    const cleared = ignoreOutput(await runtime.exec(id, execSpec(sh("exec env -i sleep 9000003")), call));
    await until(async () => (await countProcesses(runtime, id, "9000002")) >= 3);
    await until(async () => (await countProcesses(runtime, id, "9000003")) === 1);
    const second = harnessOf().reopen();
    await second.quiesce(id, call);
    expect(await countProcesses(second, id, "9000002")).toBe(0);
    expect(await countProcesses(second, id, "9000003")).toBe(0);
    expect(await countProcesses(second, id, "9000001")).toBe(1);
    await Promise.all([orphan.exit, cleared.exit]);
    await second.stop(id, call);
    expect(await harnessOf().leftovers([id])).toEqual([]);
  });
}
