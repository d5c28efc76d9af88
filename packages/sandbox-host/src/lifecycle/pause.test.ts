import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { HOME, SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import { until } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import type { PauseRequest } from "./pause.ts";

describe("pauseSession", () => {
  const pause = (test: TestHost, session: Session, more: Partial<PauseRequest> = {}) =>
    test.host.pauseSession(
      session,
      { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request", ...more },
      { signal: SIGNAL },
    );
  const resume = (test: TestHost, session: Session) =>
    test.host.resumeSession(session, { expectedGeneration: undefined }, { signal: SIGNAL });

  it("refuses new tools at once, waits for running ones, and no tool runs while it is paused (D3)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
    const running = test.bash(session, "count /workspace/n");
    await until(() => existsSync(join(path, "workspace/n")));
    const pausing = pause(test, session, { late: "kill", drainTimeoutMs: 200 });
    let refused: unknown;
    while (refused === undefined) await test.bash(session, "echo x").catch((thrown: unknown) => (refused = thrown));
    expect(refused).toMatchObject({ reason: "SESSION_PAUSED" });
    await pausing;
    expect((await running).exitReason).toBe("killed");
    expect(session.gate.inFlight).toBe(0);
    expect(session.row.phase.kind).toBe("paused");
    await expect(test.bash(session, "echo x")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    await resume(test, session);
    expect((await test.bash(session, "echo back")).content).toBe("back\n");
  });

  it("fails with tools in flight and leaves the session open, where it may not kill them", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const running = test.bash(session, "sleep");
    await until(() => session.gate.inFlight === 1);
    await expect(pause(test, session, { drainTimeoutMs: 20 })).rejects.toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    expect((await test.bash(session, "echo open")).content).toBe("open\n");
    session.killTools();
    await running;
  });

  it("is idempotent, keeps over a restart, and can be destroyed", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.bash(session, "echo boot");
    await pause(before, session);
    await pause(before, session);
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row.phase.kind).toBe("paused");
    expect(await after.runtime.liveness(again.row.container ?? "", { signal: SIGNAL })).toBe("paused");
    await expect(after.bash(again, "echo x")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    await resume(after, again);
    await resume(after, again);
    expect(await after.runtime.liveness(again.row.container ?? "", { signal: SIGNAL })).toBe("running");
    await pause(after, again);
    await after.host.destroySession(again);
    await until(() => after.host.registry.size === 0);
  });
});
