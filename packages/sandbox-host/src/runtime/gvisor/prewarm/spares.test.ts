import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import type { ContainerSpec } from "../../runtime.ts";
import { createSpares } from "./spares.ts";

const SPEC: ContainerSpec = { id: "c", rootPath: "/r", hostname: "turnbox", limits: { pids: 9 } };
const DELAY_MS = 500;

function newSpares({ fails = false, calm = () => Promise.resolve() } = {}) {
  const clock = createManualClock();
  const there = new Set<string>();
  let serial = 0;
  const boots: string[] = [];
  const frozen: string[] = [];
  const spares = createSpares({
    newId: () => `s${String((serial += 1))}`,
    boot: async (id) => {
      await Promise.resolve();
      boots.push(id);
      if (fails) throw new Error("no sandbox");
      there.add(id);
    },
    freeze: async (id, isReady) => {
      await Promise.resolve();
      if (isReady()) frozen.push(id);
    },
    remove: async (id) => {
      await Promise.resolve();
      there.delete(id);
    },
    calm,
    clock,
  });
  return { spares, clock, there, boots, frozen };
}

describe("spare sandboxes", () => {
  it("are none until a container was booted for a caller that waits, and then one, after a while", async () => {
    const { spares, clock, there } = newSpares();
    expect(spares.take(SPEC)).toBeUndefined();
    spares.expect(SPEC);
    spares.expect(SPEC);
    await clock.advance(DELAY_MS - 1);
    expect(there.size).toBe(0);
    await clock.advance(1);
    expect([...there]).toEqual(["s1"]);
    expect([spares.take(SPEC), spares.take(SPEC)]).toEqual(["s1", undefined]);
  });

  it.each([
    ["other limits", { limits: { pids: 10 } }],
    ["another name", { hostname: "other" }],
    ["a network", { network: { netnsPath: "/n", nameserver: "1.2.3.4" } }],
  ])("are not for a container with %s", async (_what, other) => {
    const { spares, clock } = newSpares();
    spares.expect(SPEC);
    await clock.advance(DELAY_MS);
    expect(spares.take({ ...SPEC, ...other })).toBeUndefined();
    expect(spares.take(SPEC)).toBe("s1");
  });

  it("are made when no caller waits for a boot", async () => {
    const calm = Promise.withResolvers<void>();
    const { spares, clock, there } = newSpares({ calm: () => calm.promise });
    spares.expect(SPEC);
    await clock.advance(DELAY_MS);
    expect(there.size).toBe(0);
    calm.resolve();
    await clock.advance(0);
    expect([...there]).toEqual(["s1"]);
  });

  it("follow what is asked for", async () => {
    const { spares, clock, there } = newSpares();
    const other = { ...SPEC, limits: { pids: 10 } };
    spares.expect(SPEC);
    await clock.advance(DELAY_MS);
    spares.expect(other);
    await clock.advance(DELAY_MS);
    expect([...there]).toEqual(["s2"]);
    expect(spares.take(other)).toBe("s2");
  });

  it("rest when they have stood by for a while, and not once they are taken", async () => {
    const { spares, clock, frozen } = newSpares();
    spares.expect(SPEC);
    await clock.advance(DELAY_MS);
    await clock.advance(60_000);
    expect(frozen).toEqual(["s1"]);
    expect(spares.take(SPEC)).toBe("s1");
    spares.expect(SPEC);
    await clock.advance(DELAY_MS);
    expect(spares.take(SPEC)).toBe("s2");
    await clock.advance(60_000);
    expect(frozen).toEqual(["s1"]);
  });

  it("are given up where they cannot be made", async () => {
    const { spares, clock, boots } = newSpares({ fails: true });
    for (let attempt = 0; attempt < 5; attempt += 1) {
      spares.expect(SPEC);
      await clock.advance(DELAY_MS);
    }
    expect(boots.length).toBe(3);
    expect(spares.take(SPEC)).toBeUndefined();
  });

  it("end with the runtime, also one that is about to be made", async () => {
    const first = newSpares();
    first.spares.expect(SPEC);
    await first.clock.advance(DELAY_MS);
    await first.spares.close();
    expect(first.there.size).toBe(0);
    const second = newSpares();
    second.spares.expect(SPEC);
    await second.spares.close();
    await second.clock.advance(DELAY_MS);
    second.spares.expect(SPEC);
    await second.clock.advance(DELAY_MS);
    expect(second.there.size).toBe(0);
  });
});
