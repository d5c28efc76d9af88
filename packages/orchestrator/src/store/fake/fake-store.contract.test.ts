import { createManualClock } from "@turnbox/core/testing";
import { storeSuite } from "../store.suite.ts";
import { createFakeStore } from "./fake-store.ts";

storeSuite("fake", () => {
  const clock = createManualClock();
  const passMs = async (ms: number): Promise<void> => {
    clock.stepWallTime(ms);
  };
  return Promise.resolve({ store: createFakeStore({ clock }), passMs });
});
