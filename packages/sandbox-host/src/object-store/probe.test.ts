import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { FakeObjectStore } from "./fake/fake-object-store.ts";
import { PROBES } from "./probe.ts";
import { call, expectReason } from "./suite/suite-fixture.suite.ts";

const HOUR_MS = 60 * 60 * 1000;

describe("the check of an object store", () => {
  it("removes what a check that crashed has left, and not what one is using", async () => {
    const clock = createManualClock();
    const store = new FakeObjectStore({ clock });
    await store.put(`${PROBES}old`, Buffer.from("x"), {}, call);
    await clock.advance(2 * HOUR_MS);
    await store.put(`${PROBES}young`, Buffer.from("x"), {}, call);
    await store.put("other", Buffer.from("x"), {}, call);
    await store.check(call);
    expect([...store.objects.keys()].toSorted()).toEqual(["other", `${PROBES}young`]);
  });

  it("refuses a store that gives back other bytes, and leaves no object there", async () => {
    const store = new FakeObjectStore();
    store.faults.spoilNext({ kind: "wrong_byte", bytes: 0 });
    await expectReason(store.check(call), "OBJECT_DAMAGED");
    expect(store.objects.size).toBe(0);
  });
});
