import { describe, expect, it } from "@jest/globals";
import { replaceMembers } from "./replace-members.ts";

class Counter {
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(): void {
    this.#count += 1;
  }

  double(): number {
    return this.#count * 2;
  }
}

describe("replaceMembers", () => {
  it("replaces some members and keeps the others, with their private fields", () => {
    const counter = new Counter();
    const replaced = replaceMembers(counter, { double: () => -1 });
    const { add } = replaced;
    add();
    expect([replaced.count, replaced.double(), counter.double()]).toEqual([1, -1, 2]);
  });

  it("takes no inherited member of the replacements", () => {
    const named: { readonly toString: () => string } = { toString: () => "own" };
    expect(replaceMembers(named, {}).toString()).toBe("own");
  });
});
