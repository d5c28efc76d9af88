import { beforeEach, describe, expect, it, jest } from "@jest/globals";
import type { ContainerSpec } from "../../runtime.ts";
import { call, execSpec, ignoreOutput, run, sh } from "../../suite/harness.suite.ts";
import { createGvisorRig } from "../gvisor-rig.suite.ts";

const TEST_MS = 60_000;
const ROUNDS = 8;
/** A program inside that is frozen before its end is given up after ten seconds. */
const HANG_MS = 8000;

describe("a pause", () => {
  jest.setTimeout(TEST_MS);
  const rig = createGvisorRig({ waitingShells: 0 }, TEST_MS);
  let container: ContainerSpec;
  beforeEach(async () => {
    container = await rig.bench.newContainer();
    await rig.runtime.start(container, call);
  }, TEST_MS);

  it("holds up neither itself nor what is being signalled inside", async () => {
    const { runtime } = rig;
    const { id } = container;
    for (let round = 0; round < ROUNDS; round += 1) {
      const sleeper = ignoreOutput(await runtime.exec(id, execSpec(sh("sleep 4546 & sleep 4546; wait")), call));
      const startedMs = performance.now();
      await Promise.all([sleeper.kill(), runtime.pause(id, call)]);
      expect(await sleeper.exit).toEqual({ kind: "killed" });
      expect(performance.now() - startedMs).toBeLessThan(HANG_MS);
      expect(await runtime.liveness(id, call)).toBe("paused");
      expect(await runtime.processes(id, call)).toBe(0);
      await runtime.resume(id, call);
    }
    expect((await run(runtime, id, sh("echo hi"))).stdout.toString()).toBe("hi\n");
  });

  it("does not hold up the deadline of what runs inside", async () => {
    const { runtime } = rig;
    const { id } = container;
    for (let round = 0; round < ROUNDS; round += 1) {
      // A pause takes about 100 ms: most of these deadlines pass during it.
      const deadlineMs = 10 + round * 15;
      const startedMs = performance.now();
      const sleeper = ignoreOutput(await runtime.exec(id, execSpec(sh("sleep 4547"), { deadlineMs }), call));
      await runtime.pause(id, call);
      expect(await sleeper.exit).toEqual({ kind: "timed_out" });
      expect(performance.now() - startedMs).toBeLessThan(HANG_MS);
      expect(await runtime.liveness(id, call)).toBe("paused");
      await runtime.resume(id, call);
    }
  });
});
