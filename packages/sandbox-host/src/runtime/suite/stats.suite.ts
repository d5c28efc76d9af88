import { expect, it } from "@jest/globals";
import { call, execSpec, ignoreOutput, reasonOf, type RuntimeHarness, run, until } from "./harness.suite.ts";

/** What a runtime reports about the use of a container. */
export function statsSuite(harnessOf: () => RuntimeHarness): void {
  it("counts the processes inside and none of its own, also while they are frozen", async () => {
    const { runtime, programs } = harnessOf();
    const container = await harnessOf().newContainer();
    await runtime.start(container, call);
    const { id } = container;
    expect(await runtime.processes(id, call)).toBe(0);
    const executions = [
      ignoreOutput(await runtime.exec(id, execSpec(programs.waits()), call)),
      ignoreOutput(await runtime.exec(id, execSpec(programs.waits()), call)),
    ];
    await until(async () => (await runtime.processes(id, call)) === 2);
    await runtime.pause(id, call);
    expect(await runtime.processes(id, call)).toBe(2);
    expect(await runtime.stats(id, call)).toMatchObject({ processes: 2 });
    await runtime.resume(id, call);
    for (const execution of executions) await execution.kill();
    await until(async () => (await runtime.processes(id, call)) === 0);
    await runtime.stop(id, call);
  });

  it("reports what a container uses, and processor time never falls while a process lives", async () => {
    const { runtime, programs } = harnessOf();
    const container = await harnessOf().newContainer();
    await runtime.start(container, call);
    const { id } = container;
    await run(runtime, id, programs.prints({ stdout: "x", stderr: "", exitCode: 0 }));
    const execution = ignoreOutput(await runtime.exec(id, execSpec(programs.waits()), call));
    const first = await runtime.stats(id, call);
    expect(first.memoryBytes).toBeGreaterThan(0);
    expect(first.cpuMs).toBeGreaterThanOrEqual(0);
    const second = await runtime.stats(id, call);
    expect(second.cpuMs).toBeGreaterThanOrEqual(first.cpuMs);
    await execution.kill();
    await runtime.stop(id, call);
  });

  it("refuses to report on one that does not run", async () => {
    const { runtime } = harnessOf();
    const container = await harnessOf().newContainer();
    expect(await reasonOf(runtime.processes(container.id, call))).toBe("SANDBOX_LOST");
    expect(await reasonOf(runtime.stats(container.id, call))).toBe("SANDBOX_LOST");
  });
}
