import { describe, expect, it } from "@jest/globals";
import { type Around, aroundMethods } from "./around-methods.ts";

class Counter {
  #count = 0;
  readonly kind = "counter";
  async add(amount: number): Promise<number> {
    this.#count += amount;
    return this.#count;
  }
  async fail(): Promise<never> {
    throw new Error("no");
  }
  get count(): number {
    return this.#count;
  }
}

describe("aroundMethods", () => {
  it("goes around the named methods and leaves the rest alone", async () => {
    const seen: string[] = [];
    const around: Around = async (method, work) => {
      seen.push(`${method}>`);
      try {
        return await work();
      } finally {
        seen.push(`<${method}`);
      }
    };
    const counter = aroundMethods(new Counter(), ["add"], around);
    expect(await counter.add(2)).toBe(2);
    await expect(counter.fail()).rejects.toThrow("no");
    expect([counter.count, counter.kind, seen]).toEqual([2, "counter", ["add>", "<add"]]);
  });
});
