import { describe, expect, it } from "@jest/globals";
import { ByteBudget, FREE_BYTES } from "./byte-budget.ts";

const UNIT = 2 * FREE_BYTES;
const LIMITS = {
  maxRequestBytes: 4 * UNIT,
  maxRequestBytesPerTenant: 3 * UNIT,
  maxRequestBytesPerCaller: 2 * UNIT,
};

describe("ByteBudget", () => {
  it("has a share for each caller, each tenant and all", () => {
    const budget = new ByteBudget(LIMITS);
    const open = (tenant: string, sandbox?: string) => budget.open({ tenant, sandbox });
    expect(open("a", "1").set(2 * UNIT)).toBe("held");
    expect(open("a", "1").set(UNIT)).toBe("no room");
    expect(open("a", "2").set(2 * UNIT)).toBe("no room");
    expect(open("a", "2").set(UNIT)).toBe("held");
    expect(open("a").set(UNIT)).toBe("no room");
    expect(open("b").set(2 * UNIT)).toBe("no room");
    expect(open("b").set(UNIT)).toBe("held");
    expect(budget.heldBytes).toBe(4 * UNIT);
  });

  it("always has room for what is small", () => {
    const budget = new ByteBudget({ ...LIMITS, maxRequestBytes: 0 });
    expect(budget.open({ tenant: "a" }).set(FREE_BYTES)).toBe("held");
    expect(budget.open({ tenant: "a" }).set(FREE_BYTES + 1)).toBe("no room");
    expect(budget.heldBytes).toBe(0);
  });

  it("holds what was last said, gives it back once, and wakes who waits", async () => {
    const budget = new ByteBudget(LIMITS);
    const first = budget.open({ tenant: "a" });
    const second = budget.open({ tenant: "a" });
    expect(first.set(UNIT)).toBe("held");
    expect(first.set(2 * UNIT)).toBe("held");
    expect(second.set(UNIT)).toBe("no room");
    const room = second.room();
    first.set(0);
    first.set(0);
    await room;
    expect(second.set(2 * UNIT)).toBe("held");
    expect(budget.heldBytes).toBe(2 * UNIT);
    second.set(0);
    expect(budget.heldBytes).toBe(0);
  });
});
