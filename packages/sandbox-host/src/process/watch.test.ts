import { expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { createContainers } from "../container/container.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { LeftContainers } from "./watch.ts";

const CALL = { signal: SIGNAL };

it("thaws the container of a process that was left, once, and not while an operation holds the gate", async () => {
  await using test = await startTestHost();
  const session = await test.create();
  await test.bash(session, "echo up");
  const container = session.row.container ?? "";
  const log = createLog({ name: "test", level: "silent", to: "stderr" });
  const containers = createContainers({ ...test, clock: createManualClock(), log });
  const [left, own] = [{} as LaunchedProcess, {} as LaunchedProcess];
  const leftContainers = new LeftContainers({ runtime: test.runtime, containers }, [left]);
  const livenessAfter = async (process: LaunchedProcess) => {
    await leftContainers.thaw(session, process, CALL);
    return await test.runtime.liveness(container, CALL);
  };

  await test.runtime.pause(container, CALL);
  expect(await livenessAfter(own)).toBe("paused");
  {
    using _closed = session.gate.close("SESSION_PAUSED");
    expect(await livenessAfter(left)).toBe("paused");
  }
  expect(await livenessAfter(left)).toBe("running");
  await test.runtime.pause(container, CALL);
  expect(await livenessAfter(left)).toBe("paused");
});
