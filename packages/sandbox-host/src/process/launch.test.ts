import { readdir } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { startTestHost } from "../compose.suite.ts";
import { CALL, ended, launch, outputOf, until } from "./process.suite.ts";
import { readOutput } from "./read-output.ts";

describe("launchProcess", () => {
  it("runs a process whose journal is read from any offset and whose exit code is recorded", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "print", ["hello ", "world", "7"]);
    expect(process.row).toMatchObject({ started: "yes", generation: 1 });
    expect(await ended(process)).toMatchObject({ reason: "exited", exitCode: 7, signal: null });
    expect((await outputOf(test, process)).length).toBe(11);
    expect(await outputOf(test, process, 6)).toHaveLength(5);
    await expect(outputOf(test, process, 12)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(test.host.processes.list(session)).toEqual([process]);
  });

  it("gives a process an environment that is made from nothing (D19)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ env: { SESSION: "s" } });
    const process = await launch(test, session, "env", [], { env: { OWN: "secret" } });
    const names = (await outputOf(test, process))
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0]);
    expect(names.toSorted()).toEqual(["HOME", "LANG", "OWN", "PATH", "PWD", "SESSION", "TERM", "USER"]);
    expect(JSON.stringify(await test.host.records.call("listProcesses", null))).not.toContain("secret");
  });

  it("starts a process once for a key, and does not remember a start that failed", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const more = { idempotencyKey: "k" };
    const [first, second] = await Promise.all([
      launch(test, session, "sleep", [], more),
      launch(test, session, "sleep", [], more),
    ]);
    expect(second).toBe(first);
    expect(await launch(test, session, "sleep", [], more)).toBe(first);
    await expect(launch(test, session, "cat", [], more)).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    const missing = launch(test, session, "no-such-program", [], { idempotencyKey: "m" });
    await expect(missing).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(test.host.processes.list(session)).toEqual([first]);
    expect(await test.host.records.call("listProcesses", null)).toHaveLength(1);
    expect(await launch(test, session, "echo", [], { idempotencyKey: "m", payload: "other" })).toBeDefined();
  });

  it("is refused while the session is paused, and its processes go with a session that is destroyed", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    const { token } = session.row;
    const pause = { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request" } as const;
    await test.host.pauseSession(session, pause, CALL);
    await expect(launch(test, session, "sleep")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    const { signal } = session.lifetime;
    const following = readOutput(process, { offset: 0, atEnd: "wait", signal }, test.host.clock).next();
    await test.host.destroySession(session);
    expect(await following).toMatchObject({ done: true });
    await until(() => test.host.registry.find(session.row.id) === undefined);
    const directory = process.spawned.directory.slice(0, process.spawned.directory.indexOf(token));
    await until(async () => (await readdir(directory)).length === 0);
    expect(() => test.host.processes.get(session, process.row.processId)).toThrow("no such process");
  });
});
