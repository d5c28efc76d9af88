import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { type Activity, IdleFreezer } from "./idle-freezer.ts";

const AFTER_MS = 5000;
const LOOK_AGAIN_MS = 30_000;

function newFreezer() {
  const clock = createManualClock();
  const frozen = new Set<string>();
  const looks: string[] = [];
  const inside: { found: Activity; freezing: "works" | "fails" } = {
    found: { kind: "idle", processes: 0 },
    freezing: "works",
  };
  const idle = new IdleFreezer({
    clock,
    afterMs: AFTER_MS,
    inspect: (id) => {
      looks.push(id);
      return Promise.resolve(inside.found);
    },
    prepare: (id) => Promise.resolve({ path: id, pids: [] }),
    freeze: ({ path }) => {
      if (inside.freezing === "fails") throw new Error("no freezer");
      frozen.add(path);
    },
    thaw: async (id) => {
      await Promise.resolve();
      frozen.delete(id);
    },
  });
  const use = async (id = "a"): Promise<void> => {
    using _held = await idle.hold(id);
  };
  return { idle, clock, frozen, looks, inside, use };
}

describe("sandboxes that are idle", () => {
  it("do so a while after their last use, and wake for the next", async () => {
    const { idle, clock, frozen, use } = newFreezer();
    await use();
    await clock.advance(AFTER_MS - 1);
    await use();
    await clock.advance(AFTER_MS - 1);
    expect(frozen.size).toBe(0);
    await clock.advance(1);
    expect([[...frozen], idle.frozenProcesses("a")]).toEqual([["a"], 0]);
    {
      using _held = await idle.hold("a");
      expect([frozen.size, idle.frozenProcesses("a")]).toEqual([0, undefined]);
      await clock.advance(10 * AFTER_MS);
      expect(frozen.size).toBe(0);
    }
    await clock.advance(AFTER_MS);
    expect(frozen.size).toBe(1);
  });

  it("are awake for all who use them at once", async () => {
    const { idle, clock, frozen, use } = newFreezer();
    await use();
    await clock.advance(AFTER_MS);
    const [first, second] = await Promise.all([idle.hold("a"), idle.look("a")]);
    expect(frozen.size).toBe(0);
    first[Symbol.dispose]();
    await clock.advance(2 * AFTER_MS);
    expect(frozen.size).toBe(0);
    second[Symbol.dispose]();
    await clock.advance(AFTER_MS);
    expect(frozen.size).toBe(1);
  });

  it("are not kept awake by those who only look", async () => {
    const { idle, clock, frozen, use } = newFreezer();
    await use();
    for (let look = 0; look < 5; look += 1) {
      await clock.advance(AFTER_MS / 5);
      if (frozen.size === 0) (await idle.look("a"))[Symbol.dispose]();
    }
    expect(frozen.size).toBe(1);
  });

  it("are left awake while something runs in them, and looked at again", async () => {
    const { clock, frozen, looks, inside, use } = newFreezer();
    inside.found = { kind: "busy" };
    await use();
    await clock.advance(AFTER_MS + LOOK_AGAIN_MS - 1);
    expect([looks.length, frozen.size]).toEqual([1, 0]);
    inside.found = { kind: "idle", processes: 0 };
    await clock.advance(1);
    expect(frozen.size).toBe(1);
  });

  it("are left awake if a call came during the look, also if it has ended again", async () => {
    const { idle, clock, frozen, inside, use } = newFreezer();
    const { promise, resolve } = Promise.withResolvers<Activity>();
    await use();
    Object.defineProperty(inside, "found", { get: () => promise, configurable: true });
    await clock.advance(AFTER_MS);
    (await idle.hold("a"))[Symbol.dispose]();
    resolve({ kind: "idle", processes: 0 });
    await clock.advance(AFTER_MS - 1);
    expect(frozen.size).toBe(0);
    await clock.advance(1);
    expect(frozen.size).toBe(1);
  });

  it("are woken where an earlier service may have left them at rest", async () => {
    const { idle, frozen } = newFreezer();
    frozen.add("a");
    using _held = await idle.look("a");
    expect(frozen.size).toBe(0);
  });

  it("are forgotten when they are gone, and stay awake where they cannot be frozen", async () => {
    const { idle, clock, looks, inside, use } = newFreezer();
    inside.freezing = "fails";
    await use();
    await clock.advance(AFTER_MS);
    expect(idle.frozenProcesses("a")).toBeUndefined();
    inside.found = { kind: "gone" };
    await clock.advance(LOOK_AGAIN_MS);
    await clock.advance(10 * LOOK_AGAIN_MS);
    expect([looks.length, clock.sleeping]).toEqual([2, 0]);
  });

  it("report how many processes a paused one has, and are not frozen any more when closed", async () => {
    const { idle, clock, frozen, inside, use } = newFreezer();
    inside.found = { kind: "idle", processes: 3 };
    await use("a");
    await clock.advance(AFTER_MS);
    expect(idle.frozenProcesses("a")).toBe(3);
    await use("b");
    idle.close();
    await clock.advance(AFTER_MS);
    expect([[...frozen], clock.sleeping]).toEqual([["a"], 0]);
    idle.forget("a");
    expect(idle.frozenProcesses("a")).toBeUndefined();
  });
});
