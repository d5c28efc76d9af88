import { expect, test } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createRecentMounts } from "./recent-mounts.ts";

const head = { token: "a", generation: 1, path: "/mnt/a/g1" };

test("returns the mount of a head that was just made once", () => {
  const recentMounts = createRecentMounts(createManualClock());
  recentMounts.note(head);
  expect(recentMounts.take({ token: "a", generation: 2 })).toBeUndefined();
  expect(recentMounts.take(head)).toBe("/mnt/a/g1");
  expect(recentMounts.take(head)).toBeUndefined();
});

test("after a while it has to be looked at", async () => {
  const clock = createManualClock();
  const recentMounts = createRecentMounts(clock);
  recentMounts.note(head);
  await clock.advance(5000);
  recentMounts.note({ ...head, token: "b" });
  expect(recentMounts.take(head)).toBeUndefined();
  expect(recentMounts.take({ ...head, token: "b" })).toBe("/mnt/a/g1");
});
