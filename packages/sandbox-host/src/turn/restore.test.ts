import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { readFile, writeAndSeal } from "./turn.suite.ts";

describe("restoreSnapshot", () => {
  it("makes a new session with the old one's settings (D39)", async () => {
    await using test = await startTestHost();
    const time = { ttlMs: 60_000, idleTimeoutMs: null, onTimeout: "pause" } as const;
    const session = await test.create({ labels: { a: "1" }, env: { K: "v" }, time, ports: [8080] });
    const first = await writeAndSeal(test, session, "one");
    await writeAndSeal(test, session, "two");
    const request = { idempotencyKey: "k", payload: "p", snapshotId: first, newSessionId: "again" };
    const restored = await test.host.restoreSnapshot(session, request, { signal: SIGNAL });
    expect(restored.row).toMatchObject({ id: "again", labels: { a: "1" }, env: { K: "v" }, ports: [8080] });
    expect(restored.row.timing).toMatchObject(time);
    expect(await readFile(test, restored)).toBe("one");
    expect(await test.host.restoreSnapshot(session, request, { signal: SIGNAL })).toBe(restored);
  });
});
