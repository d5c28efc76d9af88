import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner, systemClock } from "@turnbox/core";
import { createManualClock, createScriptedCommandRunner, type ScriptedAnswer } from "@turnbox/core/testing";
import { retryWhileBusy } from "./busy.ts";
import { detectFlavor } from "./flavor.ts";
import { poolState } from "./pool.ts";
import { ZfsCommand } from "./zfs-command.ts";

const { signal } = new AbortController();
const BUSY = { kind: "exits", exitCode: 1, stderr: "cannot destroy 'a/b': dataset is busy\n" } as const;

function createScripted(...answers: readonly ScriptedAnswer[]) {
  const left = [...answers];
  const runner = createScriptedCommandRunner(
    () => left.shift() ?? { kind: "exits", exitCode: 99, stderr: "not scripted" },
  );
  return { runner, zfs: new ZfsCommand({ runner, clock: systemClock, deadlineMs: 1000 }) };
}

describe("ZfsCommand", () => {
  it("gives every child a deadline, the C locale and no shell", async () => {
    const { runner, zfs } = createScripted({ kind: "exits", stdout: "x\n" });
    expect(await zfs.read("listing", { program: "zfs", args: ["list", "a; rm -rf /"] }, signal)).toBe("x\n");
    expect(runner.calls[0]).toMatchObject({
      command: "zfs",
      args: ["list", "a; rm -rf /"],
      deadlineMs: 1000,
      env: { LC_ALL: "C" },
    });
  });

  it("lets what may mount run alone on the machine, and nothing else", async () => {
    const lock = "/run/x.lock";
    const exits = { kind: "exits" } as const;
    const { runner } = createScripted(exits, exits, exits, { kind: "exits", exitCode: 75 });
    const zfs = new ZfsCommand({ runner, clock: systemClock, deadlineMs: 1000, mountLockPath: lock });
    await zfs.attempt({ program: "zfs", args: ["mount", "p/a"] }, signal);
    await zfs.attempt({ program: "zfs", args: ["destroy", "p/a"] }, signal);
    await zfs.attempt({ program: "zfs", args: ["create", "-o", "canmount=off", "p/b"] }, signal);
    const late = await zfs.attempt({ program: "zpool", args: ["import", "p"] }, signal);
    expect(late).toMatchObject({ kind: "refused", failure: "busy" });
    const options = ["--no-fork", "--timeout", "15", "--conflict-exit-code", "75", lock];
    expect(runner.calls.map(({ command, args }) => [command, ...args])).toEqual([
      ["flock", ...options, "zfs", "mount", "p/a"],
      ["zfs", "destroy", "p/a"],
      ["zfs", "create", "-o", "canmount=off", "p/b"],
      ["flock", ...options, "zpool", "import", "p"],
    ]);
  });

  it("looks before it tries a change again whose outcome is unknown", async () => {
    const { runner, zfs } = createScripted({ kind: "signaled", signal: "SIGABRT" });
    const change = {
      program: "zfs",
      args: ["snapshot", "a@b"],
      doing: "sealing",
      isDone: () => Promise.resolve(true),
    } as const;
    expect(await zfs.change(change, signal)).toEqual({ kind: "done", stdout: "" });
    expect(runner.calls).toHaveLength(1);
  });

  it("tries once more what turns out not to be done, and then says that it got no answer", async () => {
    const change = {
      program: "zfs",
      args: ["snapshot", "a@b"],
      doing: "sealing",
      isDone: () => Promise.resolve(false),
    } as const;
    const second = createScripted({ kind: "signaled", signal: "SIGABRT" }, { kind: "exits" });
    expect(await second.zfs.change(change, signal)).toMatchObject({ kind: "done" });
    const never = createScripted({ kind: "signaled", signal: "SIGABRT" }, { kind: "signaled", signal: "SIGABRT" });
    await expect(never.zfs.change(change, signal)).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
      admitted: "unknown",
    });
  });

  it("ends a command that does not answer at its deadline", async () => {
    const { zfs } = createScripted({ kind: "waits" });
    const outcome = await zfs.attempt({ program: "zpool", args: ["list"], deadlineMs: 20 }, signal);
    expect(outcome).toMatchObject({ kind: "unknown", cause: { reason: "COMMAND_OUTCOME_UNKNOWN" } });
  });

  it("does not wait for a child that cannot even be killed", async () => {
    const clock = createManualClock();
    const child = Promise.withResolvers<never>();
    const runner = { run: () => child.promise, start: () => child.promise };
    const zfs = new ZfsCommand({ runner, clock, deadlineMs: 1000 });
    const asked = zfs.attempt({ program: "stat", args: [] }, signal);
    const cancelled = new AbortController();
    const left = zfs.attempt({ program: "stat", args: [] }, cancelled.signal).catch((thrown: unknown) => thrown);
    cancelled.abort();
    await clock.advance(1000);
    expect(await left).toMatchObject({ reason: "CANCELLED" });
    await clock.advance(1000);
    const outcome = await asked;
    expect(outcome).toMatchObject({ kind: "unknown", cause: { reason: "COMMAND_OUTCOME_UNKNOWN" } });
    let gone = false;
    const lingering = outcome.kind === "unknown" && outcome.lingering?.then(() => (gone = true));
    await clock.advance(1);
    expect(gone).toBe(false);
    child.reject(new Error("gone at last"));
    await lingering;
    expect(gone).toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  it("is cancelled by the caller's signal, before and while a command runs", async () => {
    const { runner, zfs } = createScripted({ kind: "waits" });
    const cancelled = new AbortController();
    const waiting = zfs.attempt({ program: "zfs", args: ["list"] }, cancelled.signal);
    cancelled.abort();
    await expect(waiting).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(zfs.attempt({ program: "zfs", args: ["list"] }, cancelled.signal)).rejects.toMatchObject({
      reason: "CANCELLED",
    });
    expect(runner.calls).toHaveLength(1);
  });

  it("returns the size of an output that stays below a limit, and cuts a longer one", async () => {
    const send = { program: "zfs", args: ["send", "a@b"] } as const;
    const answers = createScripted(
      { kind: "exits", stdout: "x".repeat(624) },
      { kind: "exits", stdout: "x".repeat(625) },
      { kind: "exits", exitCode: 1, stderr: "cannot open 'a@b': dataset does not exist\n" },
      { kind: "signaled", signal: "SIGKILL" },
    );
    expect(await answers.zfs.readBounded(send, 624, signal)).toEqual({ kind: "whole", bytes: 624 });
    expect(await answers.zfs.readBounded(send, 624, signal)).toEqual({ kind: "more" });
    expect(await answers.zfs.readBounded(send, 624, signal)).toMatchObject({ kind: "refused", failure: "not-found" });
    expect(await answers.zfs.readBounded(send, 624, signal)).toMatchObject({ kind: "unknown" });
    expect(answers.runner.calls[0]).toMatchObject({ args: ["send", "a@b"], deadlineMs: 1000 });
  });

  it("ends an endless output at its limit", async () => {
    const children = createChildCommandRunner();
    const zfs = new ZfsCommand({
      runner: { ...children, start: (spec, options) => children.start({ ...spec, command: "yes" }, options) },
      clock: systemClock,
      deadlineMs: 20_000,
    });
    expect(await zfs.readBounded({ program: "zfs", args: [] }, 1024, signal)).toEqual({ kind: "more" });
  });

  it("names a program that is not installed", async () => {
    const { zfs } = createScripted({ kind: "missing" });
    await expect(zfs.attempt({ program: "zfs", args: [] }, signal)).rejects.toMatchObject({
      reason: "COMMAND_MISSING",
    });
  });
});

describe("retryWhileBusy", () => {
  const destroy = (zfs: ReturnType<typeof createScripted>["zfs"]) => () =>
    zfs.change(
      { program: "zfs", args: ["destroy", "a/b"], doing: "destroying", isDone: () => Promise.resolve(false) },
      signal,
    );

  it("tries again on zfs-fuse until it is done", async () => {
    const { runner, zfs } = createScripted(BUSY, BUSY, { kind: "exits" });
    const outcome = await retryWhileBusy(destroy(zfs), {
      clock: systemClock,
      flavor: "zfs-fuse",
      patienceMs: 3000,
      signal,
    });
    expect([outcome.kind, runner.calls.length]).toEqual(["done", 3]);
  });

  it("believes OpenZFS at once", async () => {
    const { runner, zfs } = createScripted(BUSY);
    const outcome = await retryWhileBusy(destroy(zfs), {
      clock: systemClock,
      flavor: "openzfs",
      patienceMs: 3000,
      signal,
    });
    expect(outcome).toMatchObject({ kind: "refused", failure: "busy" });
    expect(runner.calls).toHaveLength(1);
  });

  it("gives up when its patience has an end", async () => {
    const { zfs } = createScripted(BUSY, BUSY, BUSY, BUSY, BUSY, BUSY);
    const outcome = await retryWhileBusy(destroy(zfs), {
      clock: systemClock,
      flavor: "zfs-fuse",
      patienceMs: 50,
      signal,
    });
    expect(outcome).toMatchObject({ kind: "refused", failure: "busy" });
  });
});

describe("detectFlavor", () => {
  it.each([
    [{ kind: "exits", stdout: "zfs-2.3.2-1~bpo12+2\nzfs-kmod-2.3.2-1~bpo12+2\n" }, "openzfs"],
    [
      { kind: "exits", exitCode: 2, stderr: "unrecognized command 'version'\nusage: zfs command args ...\n" },
      "zfs-fuse",
    ],
    [
      {
        kind: "exits",
        exitCode: 1,
        stderr: "connect: Connection refused\nPlease make sure that the zfs-fuse daemon is running.\n",
      },
      "zfs-fuse",
    ],
    [
      {
        kind: "exits",
        exitCode: 1,
        stderr: "The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root.\n",
      },
      "openzfs",
    ],
  ] as const)("reads %j as %s", async (answer, flavor) => {
    expect(await detectFlavor(createScripted(answer).zfs, signal)).toBe(flavor);
  });
});

describe("poolState", () => {
  it("takes no state but ONLINE and DEGRADED for one that serves (D12)", () => {
    expect(
      ["ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SUSPENDED", "", "new"].map(poolState),
    ).toEqual(["online", "degraded", ...Array.from({ length: 7 }, () => "unavailable")]);
  });
});
