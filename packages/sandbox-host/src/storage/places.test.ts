import { describe, expect, it } from "@jest/globals";
import { createPlaces } from "./places.ts";

const { signal } = new AbortController();

describe("createPlaces", () => {
  it("lets so many in, and the next when one leaves, in the order of asking", async () => {
    const places = createPlaces(2);
    const leaveFirst = await places.take(signal);
    await places.take(signal);
    const order: string[] = [];
    const waiting = ["a", "b"].map(async (name) => {
      const leave = await places.take(signal);
      order.push(name);
      return leave;
    });
    leaveFirst();
    // Leaving twice frees one place.
    leaveFirst();
    const leave = await waiting[0];
    expect(order).toEqual(["a"]);
    leave?.();
    await waiting[1];
    expect(order).toEqual(["a", "b"]);
  });

  it("forgets whoever gave up waiting", async () => {
    const places = createPlaces(1);
    const leave = await places.take(signal);
    const impatient = new AbortController();
    const waiting = places.take(impatient.signal);
    impatient.abort();
    await expect(waiting).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(places.take(impatient.signal)).rejects.toMatchObject({ reason: "CANCELLED" });
    leave();
    expect(await places.take(signal)).toBeInstanceOf(Function);
  });
});
