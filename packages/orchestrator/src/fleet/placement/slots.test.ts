import { describe, expect, it } from "@jest/globals";
import { Slots } from "./slots.ts";

const DEMAND = { cpus: 2, memoryBytes: 100, diskBytes: 10 };

function createSlots() {
  const clock = { now: 0, monotonicMs: () => clock.now };
  return { clock, slots: new Slots(clock) };
}

describe("Slots", () => {
  it("adds up what is claimed on an instance", () => {
    const { slots } = createSlots();
    using _first = slots.claim("a", DEMAND);
    using _second = slots.claim("a", DEMAND);
    expect(slots.promised("a")).toEqual({ sessions: 2, cpus: 4, memoryBytes: 200, diskBytes: 20 });
    expect(slots.promised("b").sessions).toBe(0);
  });

  it("gives the slot back when the create fails", () => {
    const { slots } = createSlots();
    expect(() => {
      using _claim = slots.claim("a", DEMAND);
      throw new Error("the host refused");
    }).toThrow();
    expect(slots.promised("a").sessions).toBe(0);
  });

  it("D29: a report does not overwrite a create in flight", () => {
    const { clock, slots } = createSlots();
    using _claim = slots.claim("a", DEMAND);
    clock.now = 10;
    slots.reported("a", 5);
    expect(slots.promised("a").sessions).toBe(1);
  });

  it("D29: a report asked for before the sandbox was there does not release its slot, a later one does", () => {
    const { clock, slots } = createSlots();
    {
      using claim = slots.claim("a", DEMAND);
      clock.now = 10;
      claim.keep();
    }
    slots.reported("a", 10);
    expect(slots.promised("a").sessions).toBe(1);
    slots.reported("a", 11);
    expect(slots.promised("a").sessions).toBe(0);
  });

  it("forgets an instance that is gone", () => {
    const { slots } = createSlots();
    const claim = slots.claim("a", DEMAND);
    slots.forget("a");
    claim[Symbol.dispose]();
    expect(slots.promised("a").sessions).toBe(0);
  });
});
