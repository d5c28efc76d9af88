import { expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { startTestHost } from "../compose.suite.ts";
import { createContainers } from "./container.ts";

it("ends what is retired a moment later, and at once for who needs it gone", async () => {
  await using test = await startTestHost();
  const session = await test.create();
  const clock = createManualClock();
  const log = createLog({ name: "test", level: "silent", to: "stderr" });
  const containers = createContainers({ ...test, clock, log });
  let ended = 0;
  const end = async (): Promise<void> => {
    await Promise.resolve();
    ended += 1;
  };
  containers.retire(session, end);
  await clock.advance(299);
  expect(ended).toBe(0);
  await clock.advance(1);
  expect(ended).toBe(1);
  containers.retire(session, end);
  await containers.settled(session);
  expect(ended).toBe(2);
});
