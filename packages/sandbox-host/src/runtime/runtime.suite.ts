import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { ContainerSpec } from "./runtime.ts";
import { execSuite } from "./suite/exec.suite.ts";
import { call, type RuntimeHarness, type RuntimeTraits } from "./suite/harness.suite.ts";
import { killSuite } from "./suite/kill.suite.ts";
import { quiesceSuite } from "./suite/quiesce.suite.ts";
import { crashSuite, lifecycleSuite } from "./suite/lifecycle.suite.ts";
import { spawnSuite } from "./suite/spawn.suite.ts";
import { statsSuite } from "./suite/stats.suite.ts";
import { terminalSuite } from "./suite/terminal.suite.ts";

const TEST_TIMEOUT_MS = 60_000;

/** What every `Runtime` does. An adapter declares by its traits and by its harness what does not apply to it. */
export function runtimeSuite(
  name: string,
  create: () => Promise<RuntimeHarness>,
  traits: RuntimeTraits & {
    readonly crashes: "yes" | "no";
    /** `one`: what an instance does by itself after a while would hit another one that works in the same place. */
    readonly instances?: "one";
  },
): void {
  describe(`Runtime: ${name}`, () => {
    jest.setTimeout(TEST_TIMEOUT_MS);
    let harness: RuntimeHarness;
    let container: ContainerSpec;
    beforeAll(async () => {
      harness = await create();
      await harness.runtime.open(call);
      container = await harness.newContainer();
      await harness.runtime.start(container, call);
    }, TEST_TIMEOUT_MS);
    afterAll(async () => {
      const ids = await harness.runtime.list(call);
      for (const id of ids) await harness.runtime.stop(id, call);
      const leftovers = await harness.leftovers(ids);
      await harness[Symbol.asyncDispose]();
      expect(leftovers).toEqual([]);
    }, TEST_TIMEOUT_MS);

    describe("running a process", () => {
      execSuite(() => ({ harness, container }), traits);
    });
    describe("ending a process", () => {
      killSuite(() => ({ harness, container }), traits);
    });
    describe("a process that outlives the service", () => {
      spawnSuite(
        () => ({ harness, container }),
        () => harness,
        traits,
      );
    });
    describe("a process on a terminal", () => {
      terminalSuite(() => ({ harness, container }), traits);
    });
    describe("the life of a container", () => {
      lifecycleSuite(() => harness);
    });
    if (traits.instances !== "one") {
      describe("what a service that died has left running", () => {
        quiesceSuite(() => harness, traits);
      });
    }
    describe("what a container uses", () => {
      statsSuite(() => harness);
    });
    if (traits.crashes === "yes") {
      describe("the death of a sandbox", () => {
        crashSuite(() => {
          const { crash } = harness;
          if (crash === undefined) throw new Error("the harness cannot crash a sandbox");
          return { ...harness, crash };
        });
      });
    }
    it("is as it was after all of this", async () => {
      expect(await harness.runtime.liveness(container.id, call)).toBe("running");
    });
  });
}
