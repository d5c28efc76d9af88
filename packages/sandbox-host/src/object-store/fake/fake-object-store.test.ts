import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { call, expectReason, read, readText } from "../suite/suite-fixture.suite.ts";
import { FakeObjectStore } from "./fake-object-store.ts";

const lost = (): SandboxError => new SandboxError("OBJECT_STORE_UNAVAILABLE", "lost");

describe("the faults of the fake object store", () => {
  it("fails an operation before its effect, or after it, once", async () => {
    const store = new FakeObjectStore();
    store.faults.failNext("put", { error: lost() }, { error: lost(), when: "after" });
    await expectReason(store.put("a", Buffer.from("x"), {}, call), "OBJECT_STORE_UNAVAILABLE");
    expect(store.objects.size).toBe(0);
    await expectReason(store.put("a", Buffer.from("x"), {}, call), "OBJECT_STORE_UNAVAILABLE");
    expect(await readText(store, "a")).toBe("x");
    await store.put("a", Buffer.from("y"), {}, call);
  });

  it("cuts a body, gives wrong bytes, and damages what is stored", async () => {
    const store = new FakeObjectStore();
    await store.put("a", Buffer.from("0123456789"), {}, call);
    store.faults.spoilNext({ kind: "cut", bytes: 3 });
    await expectReason(read(store, "a"), "OBJECT_STORE_UNAVAILABLE");
    store.faults.spoilNext({ kind: "wrong_byte", bytes: 3 });
    await expectReason(read(store, "a"), "OBJECT_DAMAGED");
    expect(await readText(store, "a")).toBe("0123456789");
    store.damage("a");
    await expectReason(read(store, "a"), "OBJECT_DAMAGED");
  });

  it("holds an operation until it is released or its signal aborts", async () => {
    const store = new FakeObjectStore();
    const hold = store.faults.holdNext("put");
    const put = store.put("a", Buffer.from("x"), {}, call);
    await hold.entered;
    expect(store.objects.size).toBe(0);
    hold.release();
    await put;
    const stop = new AbortController();
    store.faults.holdNext("stat");
    const stat = expect(store.stat("a", { signal: stop.signal })).rejects.toThrow("enough");
    stop.abort(new Error("enough"));
    await stat;
  });

  it("lists what was there before, is full, and takes no notice of conditions, on demand", async () => {
    const store = new FakeObjectStore();
    store.freezeLists();
    await store.put("a", Buffer.from("x"), {}, call);
    expect((await store.list("", {}, call)).objects).toEqual([]);
    store.thawLists();
    expect((await store.list("", {}, call)).objects).toHaveLength(1);
    store.faults.capacityBytes = 2;
    await expectReason(store.put("b", Buffer.from("xx"), {}, call), "OBJECT_STORE_FULL");
    await store.put("a", Buffer.from("xx"), {}, call);
    store.faults.capacityBytes = Number.POSITIVE_INFINITY;
    store.faults.conditions = "ignored";
    await expectReason(store.check(call), "OBJECT_STORE_DENIED");
  });
});
