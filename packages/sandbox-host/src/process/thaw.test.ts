import { expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { createContainers } from "../session/container.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { createThaw } from "./thaw.ts";

const CALL = { signal: SIGNAL };
const LARGE = 128 * 1024 * 1024;
const PROCESS = {} as LaunchedProcess;

it("lets a sandbox go on that its guard paused after the output was made small again", async () => {
  await using test = await startTestHost();
  const session = await test.create();
  await test.bash(session, "echo up");
  const container = session.row.container ?? "";
  const clock = createManualClock();
  const containers = createContainers({
    ...test,
    clock,
    log: createLog({ name: "test", level: "silent", to: "stderr" }),
  });
  const thaw = createThaw({ runtime: test.runtime, containers, clock });
  const look = async () => {
    await clock.advance(1000);
    await thaw.look(session, PROCESS, CALL);
    return await test.runtime.liveness(container, CALL);
  };

  await test.runtime.pause(container, CALL);
  thaw.note(PROCESS, 1000);
  expect(await look()).toBe("paused");

  thaw.note(PROCESS, LARGE);
  expect(await look()).toBe("running");
  thaw.note(PROCESS, 1000);
  await test.runtime.pause(container, CALL);
  expect(await look()).toBe("running");

  await clock.advance(60_000);
  await look();
  await test.runtime.pause(container, CALL);
  expect(await look()).toBe("paused");
});
