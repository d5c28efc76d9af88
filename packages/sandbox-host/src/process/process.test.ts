import { readdir, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { startTestHost, SIGNAL, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { LaunchRequest } from "./launch.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { readOutput } from "./read-output.ts";

const CALL = { signal: SIGNAL };

function request(binary: string, args: readonly string[] = [], more: Partial<LaunchRequest> = {}): LaunchRequest {
  return {
    idempotencyKey: "",
    payload: JSON.stringify([binary, args]),
    expectedGeneration: undefined,
    binary,
    args,
    env: {},
    cwd: "/workspace",
    terminal: null,
    port: 0,
    ...more,
  };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(10);
  }
}

async function outputOf({ host }: TestHost, process: LaunchedProcess, offset = 0): Promise<string> {
  let text = "";
  for await (const { data } of readOutput(process, { offset, atEnd: "wait", signal: SIGNAL }, host.clock))
    text += Buffer.from(data).toString("utf8");
  return text;
}

async function ended(process: LaunchedProcess): Promise<LaunchedProcess["row"]["end"]> {
  await until(() => process.row.end !== null);
  return process.row.end;
}

const launch = ({ host }: TestHost, session: Session, ...args: Parameters<typeof request>): Promise<LaunchedProcess> =>
  host.launchProcess(session, request(...args), CALL);

describe("launched processes", () => {
  it("run, write to a journal that is read from any offset, and tell their exit code", async () => {
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

  it("are given an environment that is made from nothing (D19)", async () => {
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

  it("are started once for a key, and a start that failed is not remembered", async () => {
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

  it("outlive the service with journal and input, and their exit code is known after it", async () => {
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

  it("take signals, and one that has ended is left alone", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    await test.host.killProcess(session, process, { signal: 15 }, CALL);
    expect(await ended(process)).toMatchObject({ reason: "signaled", signal: 15, exitCode: null });
    await test.host.killProcess(session, process, { signal: 9 }, CALL);
    expect(process.row.end).toMatchObject({ signal: 15 });
  });

  it("are ended by a rollback and told as stopped (D11), or make it refuse", async () => {
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
  ] as const)("tell of a sandbox that ended as %s, and the next one runs in a new one", async (cause, reason) => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    test.runtime.crash(process.row.container, cause);
    expect(await ended(process)).toMatchObject({ reason, exitCode: null });
    const next = await launch(test, session, "echo", ["hi"]);
    expect(await outputOf(test, next)).toBe("hi\n");
    expect(next.row.generation).toBe(2);
  });

  it("are refused while the session is paused, and go with a session that is destroyed", async () => {
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

  it("have a terminal that ends with the service", async () => {
    await using first = await startTestHost();
    const session = await first.create({ sessionId: "s" });
    const terminal = { columns: 80, rows: 24 };
    const process = await launch(first, session, "cat", [], { terminal });
    expect(await first.host.terminals.type(process, { offset: 0, data: Buffer.from("ls") }, CALL)).toBe(2);
    expect(await first.host.terminals.type(process, { offset: 0, data: Buffer.from("ls -l") }, CALL)).toBe(5);
    await until(async () => (await process.journal.extent()).end === 5);
    const other = await launch(first, session, "sleep", [], { terminal });
    await first.host.killProcess(session, other, { signal: 2 }, CALL);
    expect(await ended(other)).toMatchObject({ reason: "signaled", signal: 2 });
    await using second = await first.restart();
    const again = second.host.registry.find("s");
    if (again === undefined) throw new Error("the session is gone");
    const found = second.host.processes.get(again, process.row.processId);
    expect(found.row.end).toMatchObject({ reason: "terminal_closed" });
    expect(await outputOf(second, found)).toBe("ls -l");
  });

  it("have a bounded number of terminals, and a place again when one has ended", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const terminal = { columns: 80, rows: 24 };
    const processes = await Promise.all(
      Array.from({ length: 16 }, () => launch(test, session, "sleep", [], { terminal })),
    );
    await expect(launch(test, session, "sleep", [], { terminal })).rejects.toMatchObject({ reason: "OVERLOADED" });
    await launch(test, await test.create({ sessionId: "other" }), "sleep", [], { terminal });
    const [first] = processes;
    if (first === undefined) throw new Error("nothing was launched");
    await test.host.killProcess(session, first, { signal: 9 }, CALL);
    await ended(first);
    await launch(test, session, "sleep", [], { terminal });
  });

  it("are read by somebody who hears now and then that a silent one lives", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    let nowMs = 0;
    const sleep = (): Promise<void> => {
      nowMs += 1_000;
      return Promise.resolve();
    };
    const clock = { ...test.host.clock, monotonicMs: () => nowMs, sleep };
    const reader = new AbortController();
    const pieces = readOutput(process, { offset: 0, atEnd: "wait", signal: reader.signal }, clock);
    const alive = { done: false, value: { data: Buffer.alloc(0), offset: 0, droppedBytes: 0, last: "no" } };
    expect([await pieces.next(), nowMs]).toEqual([alive, 15_000]);
    expect([await pieces.next(), nowMs]).toEqual([alive, 30_000]);
    reader.abort();
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("are read by somebody who is told what is gone, also where nothing is left", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    await writeFile(await process.journal.outputPath(), "0123456789");
    await process.journal.rotate(0);
    const pieces = readOutput(process, { offset: 4, atEnd: "stop", signal: SIGNAL }, test.host.clock);
    expect(await pieces.next()).toMatchObject({ value: { offset: 10, droppedBytes: 6, last: "no" } });
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("are read by somebody who goes away without a trace", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    const reader = new AbortController();
    const pieces = readOutput(process, { offset: 0, atEnd: "wait", signal: reader.signal }, test.host.clock);
    const next = pieces.next();
    await until(() => process.followers.size === 1);
    reader.abort();
    expect(process.followers.size).toBe(0);
    expect(await next).toMatchObject({ done: true });
  });
});

async function snapshot({ host }: TestHost, session: Session): Promise<{ readonly snapshotId: string }> {
  const request = { idempotencyKey: "", payload: "", title: "before", expectedGeneration: undefined };
  return { snapshotId: (await host.createSnapshot(session, request, CALL)).id };
}
