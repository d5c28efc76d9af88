import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { until } from "../session/rig.suite.ts";
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

describe("a container that dies", () => {
  it("is replaced on the same files under a new generation", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a.txt kept");
    test.runtime.crash(session.row.container ?? "", "lost");
    expect((await test.bash(session, "cat /workspace/a.txt")).content).toBe("kept");
    expect(session.row.generation).toBe(2);
  });

  it("ends the call that ran in it with its cause", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
    const running = test.bash(session, "count /workspace/n");
    await until(() => existsSync(join(path, "workspace/n")));
    test.runtime.crash(session.row.container ?? "", "oom");
    expect(await running).toMatchObject({ exitReason: "oom", isError: true });
  });
});
