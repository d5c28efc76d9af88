import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { takeSnapshot } from "./turn.suite.ts";

const pause = { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request" } as const;

describe("createSnapshot", () => {
  it("takes named snapshots outside of the count of turns, once for a key", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await takeSnapshot(test, session, "before the change", "k");
    expect(first).toMatchObject({ kind: "named", title: "before the change", turnNumber: null });
    expect(await takeSnapshot(test, session, "before the change", "k")).toEqual(first);
    await expect(takeSnapshot(test, session, "another", "k")).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    expect(session.row).toMatchObject({ turnCounter: 0, parentSnapshot: first.id });
  });

  it("looks at the session's state first (D8)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.host.pauseSession(session, pause, { signal: SIGNAL });
    expect(await takeSnapshot(test, session, "while paused")).toMatchObject({ kind: "named" });
    const hold = test.storage.faults.holdNext("destroySession");
    await test.host.destroySession(session);
    await hold.entered;
    await expect(takeSnapshot(test, session, "late")).rejects.toMatchObject({ reason: "SESSION_DESTROYING" });
    hold.release();
  });
});
