import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { requireCommand } from "../../scripts/bootstrap/command.mjs";
import { takeLock } from "../../scripts/bootstrap/lock.mjs";
import { createStamp, digest } from "../../scripts/bootstrap/stamp.mjs";
import { describeFailure, runStep } from "../../scripts/bootstrap/step.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "turnbox-house-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string) => writeFileSync(path.join(folder, name), text);

describe("runStep", () => {
  const createStep = (work: () => void) => {
    const of = (name: string) => () => digest([name], { base: folder });
    const stamp = createStamp({ folder, name: "stamp", inputs: of("in"), outputs: of("out") });
    return () =>
      runStep({ name: "build", stamp, work: async () => work(), remedy: "try again", print: () => undefined });
  };

  it("works once for the same inputs, and again when inputs or outputs have changed", async () => {
    let runs = 0;
    const step = createStep(() => {
      runs += 1;
      write("out", "built");
    });
    write("in", "1");
    await step();
    await step();
    expect(runs).toBe(1);
    write("in", "2");
    await step();
    expect(runs).toBe(2);
    write("out", "damaged");
    await step();
    expect(runs).toBe(3);
  });

  it("works again after a failure", async () => {
    write("in", "1");
    const step = createStep(() => {
      throw new Error("no room");
    });
    await expect(step()).rejects.toThrow('step "build" failed');
    await expect(step()).rejects.toThrow('step "build" failed');
  });

  it("fails with step, command, exit code, last lines and remedy", async () => {
    const argv = [process.execPath, "-e", "console.log('line one'); process.exit(3)"];
    const work = () => requireCommand(argv, { cwd: folder, env: process.env, timeoutMs: 20_000 });
    const step = runStep({ name: "build", stamp: undefined, work, remedy: "try again", print: () => undefined });
    const text = await step.then(() => "no failure", describeFailure);
    expect(text).toContain('step "build" failed');
    expect(text).toContain(`command:   ${argv.join(" ")}`);
    expect(text).toContain("exit code: 3");
    expect(text).toContain("    line one");
    expect(text).toContain("remedy:    try again");
  });

  it("fails for a command that does not exist and for one that takes too long", async () => {
    const run = (argv: string[], timeoutMs: number) =>
      requireCommand(argv, { cwd: folder, env: process.env, timeoutMs });
    await expect(run(["turnbox-house-nowhere"], 20_000)).rejects.toThrow("exit code 127");
    await expect(run([process.execPath, "-e", "setInterval(() => {}, 1000)"], 200)).rejects.toThrow("signal SIGKILL");
  });
});

describe("takeLock", () => {
  it("lets one in at a time and says for whom the others wait", async () => {
    const lock = path.join(folder, "lock");
    const messages: string[] = [];
    const print = (line: string) => void messages.push(line);
    const release = await takeLock(lock, { print });
    let isIn = false;
    // The lock tells its holders apart by process, so this one stands for another that lives.
    const second = takeLock(lock, { print, self: `${process.ppid} -` }).then((leave) => {
      isIn = true;
      return leave;
    });
    while (messages.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isIn).toBe(false);
    expect(messages).toEqual([expect.stringContaining(`pid ${process.pid}`)]);
    release();
    (await second)();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("takes over from an owner that is dead, and from a pid that is now another process", async () => {
    for (const owner of ["999999999 1", `${process.pid} 1`]) {
      const lock = path.join(folder, "lock");
      mkdirSync(lock);
      write("lock/owner", owner);
      const release = await takeLock(lock, { print: () => undefined });
      release();
      expect(readdirSync(folder)).toEqual([]);
    }
  });
});
