import { beforeEach, describe, expect, it } from "@jest/globals";
import { SharedLimits } from "./shared-limits.ts";

let limits: SharedLimits;
beforeEach(() => {
  limits = new SharedLimits();
  limits.noteBoot("c");
});

describe("the limits of a shell that waits", () => {
  it("are intact if no call has run since it was started but the one that asks", () => {
    limits.beginCall("c")();
    const mark = limits.mark("c");
    limits.beginCall("c");
    expect(limits.isIntact("c", mark)).toBe(true);
  });

  it("may be lowered by a call that has run since", () => {
    const mark = limits.mark("c");
    limits.beginCall("c")();
    limits.beginCall("c");
    expect(limits.isIntact("c", mark)).toBe(false);
  });

  it("may be lowered by a call that was running when it was started", () => {
    const end = limits.beginCall("c");
    const mark = limits.mark("c");
    end();
    limits.beginCall("c");
    expect(limits.isIntact("c", mark)).toBe(false);
  });

  it("may be lowered by a process that is no call, for as long as the container lives", () => {
    limits.noteOther("c");
    const mark = limits.mark("c");
    limits.beginCall("c");
    expect(limits.isIntact("c", mark)).toBe(false);
    limits.noteBoot("c");
    const later = limits.mark("c");
    limits.beginCall("c");
    expect(limits.isIntact("c", later)).toBe(true);
  });

  it("are not known in a container that an earlier service has booted", () => {
    const mark = limits.mark("other");
    limits.beginCall("other");
    expect(limits.isIntact("other", mark)).toBe(false);
  });
});
