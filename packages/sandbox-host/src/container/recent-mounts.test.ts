import { expect, test } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createFreshHeads } from "./recent-mounts.ts";

const head = { token: "a", generation: 1, path: "/mnt/a/g1" };

test("a head that was just made is told of once", () => {
  const fresh = createFreshHeads(createManualClock());
  fresh.note(head);
  expect(fresh.take({ token: "a", generation: 2 })).toBeUndefined();
  expect(fresh.take(head)).toBe("/mnt/a/g1");
  expect(fresh.take(head)).toBeUndefined();
});

test("after a while it has to be looked at", async () => {
  const clock = createManualClock();
  const fresh = createFreshHeads(clock);
  fresh.note(head);
  await clock.advance(5000);
  fresh.note({ ...head, token: "b" });
  expect(fresh.take(head)).toBeUndefined();
  expect(fresh.take({ ...head, token: "b" })).toBe("/mnt/a/g1");
});
