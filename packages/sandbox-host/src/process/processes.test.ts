import { describe, expect, it } from "@jest/globals";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import { CALL, ended, launch, outputOf } from "./process.suite.ts";

describe("Processes", () => {
  it("outlive the service with journal and input, and their exit code is known to the next one", async () => {
    await using first = await startTestHost();
    const session = await first.create({ sessionId: "s" });
    const process = await launch(first, session, "cat", [], { idempotencyKey: "k" });
    const { processId } = process.row;
    expect(await process.input.write(0, Buffer.from("one "), CALL)).toBe(4);
    await using second = await first.restart();
    const again = second.host.registry.find("s");
    if (again === undefined) throw new Error("the session is gone");
    const found = second.host.processes.get(again, processId);
    expect(found.row).toMatchObject({ started: "yes", end: null });
    expect(await launch(second, again, "cat", [], { idempotencyKey: "k" })).toBe(found);
    expect(await found.input.write(0, Buffer.from("one two"), CALL)).toBe(7);
    await second.runtime.endInput(found.row.container, found.spawned, CALL);
    expect(await ended(found)).toMatchObject({ reason: "exited", exitCode: 0 });
    expect(await outputOf(second, found)).toBe("one two");
    await using third = await second.restart();
    const last = third.host.registry.find("s");
    if (last === undefined) throw new Error("the session is gone");
    expect(third.host.processes.get(last, processId).row.end).toMatchObject({ reason: "exited", exitCode: 0 });
  });

  it("are ended by a rollback and recorded as stopped (D11), or make it refuse", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshotId } = await snapshot(test, session);
    const process = await launch(test, session, "sleep");
    const rollback = (processes: "stop" | "refuse") =>
      test.host.rollbackSession(
        session,
        { idempotencyKey: "", payload: "", snapshotId, expectedGeneration: undefined, drainTimeoutMs: 0, processes },
        CALL,
      );
    await expect(rollback("refuse")).rejects.toMatchObject({ reason: "PROCESSES_RUNNING" });
    expect(process.row.end).toBeNull();
    await rollback("stop");
    expect(await ended(process)).toMatchObject({ reason: "stopped", exitCode: null });
    expect(test.host.processes.list(session)).toEqual([]);
    expect(test.host.processes.get(session, process.row.processId)).toBe(process);
    const old = launch(test, session, "sleep", [], { expectedGeneration: 1 });
    await expect(old).rejects.toMatchObject({ reason: "GENERATION_CHANGED" });
  });

  it.each([
    ["lost", "sandbox_lost"],
    ["oom", "oom"],
  ] as const)("end with a sandbox that ended as %s, and the next one runs in a new sandbox", async (cause, reason) => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    test.runtime.crash(process.row.container, cause);
    expect(await ended(process)).toMatchObject({ reason, exitCode: null });
    const next = await launch(test, session, "echo", ["hi"]);
    expect(await outputOf(test, next)).toBe("hi\n");
    expect(next.row.generation).toBe(2);
  });
});

async function snapshot({ host }: TestHost, session: Session): Promise<{ readonly snapshotId: string }> {
  const request = { idempotencyKey: "", payload: "", title: "before", expectedGeneration: undefined };
  return { snapshotId: (await host.createSnapshot(session, request, CALL)).id };
}
