import { constants } from "node:fs";
import { mkdtemp, open, readFile, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { ProcessLife, Runtime, SpawnedProcess } from "../runtime.ts";
import {
  type Argv,
  call,
  countProcesses,
  PATH,
  reasonOf,
  type RuntimeHarness,
  type RuntimeTraits,
  run,
  sh,
  until,
} from "./harness.suite.ts";
import type { Started } from "./exec.suite.ts";

const SIGINT = 2;
const SIGKILL = 9;
const SIGTERM = 15;

/** Processes that outlive the service, and what is known of them. */
export function spawnSuite(started: () => Started, harnessOf: () => RuntimeHarness, traits: RuntimeTraits): void {
  let directory: string;
  let outputPath: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-spawn-"));
    outputPath = join(directory, "output");
  });
  afterEach(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  const spawn = async (runtime: Runtime, id: string, argv: Argv): Promise<SpawnedProcess> => {
    const name = randomToken(26);
    const spec = { name, directory, outputPath, argv, env: { PATH, HOME: "/" }, cwd: "/workspace" };
    expect((await runtime.spawn(id, spec, call)).pid).toBeGreaterThan(0);
    return { name, directory };
  };
  const setup = () => {
    const { harness, container } = started();
    return { runtime: harness.runtime, programs: harness.programs, id: container.id, reopen: () => harness.reopen() };
  };
  const ended = async (runtime: Runtime, id: string, process: SpawnedProcess): Promise<ProcessLife> => {
    let life: ProcessLife = { kind: "running" };
    await until(async () => {
      life = await runtime.inspect(id, process, call);
      return life.kind !== "running";
    });
    return life;
  };
  const type = async (text: string): Promise<void> => {
    await using input = await open(join(directory, "input"), constants.O_WRONLY | constants.O_NONBLOCK);
    await input.write(text);
  };
  const output = async (): Promise<string> => await readFile(outputPath, "utf8");

  it("writes both outputs to one file and reports the exit code, again and again", async () => {
    const { runtime, programs, id } = setup();
    const process = await spawn(runtime, id, programs.prints({ stdout: "out", stderr: "err", exitCode: 7 }));
    expect(await ended(runtime, id, process)).toEqual({ kind: "exited", exitCode: 7 });
    expect(await runtime.inspect(id, process, call)).toEqual({ kind: "exited", exitCode: 7 });
    expect(["outerr", "errout"]).toContain(await output());
  });

  it("keeps the input open from one writer to the next, and over instances, until it is ended", async () => {
    const { runtime, programs, id, reopen } = setup();
    const process = await spawn(runtime, id, programs.copiesInput());
    await type("one ");
    await until(async () => (await output()) === "one ");
    const second = reopen();
    await second.quiesce(id, call);
    await second.tend(process, call);
    await type("two");
    await until(async () => (await output()) === "one two");
    expect(await second.inspect(id, process, call)).toEqual({ kind: "running" });
    await second.endInput(id, process, call);
    await second.endInput(id, process, call);
    expect(await ended(second, id, process)).toEqual({ kind: "exited", exitCode: 0 });
    expect(await runtime.inspect(id, process, call)).toEqual({ kind: "exited", exitCode: 0 });
  });

  it("reports how it ended, however often its input is ended at that moment", async () => {
    const { runtime, programs, id } = setup();
    const process = await spawn(runtime, id, programs.copiesInput());
    await Promise.all(Array.from({ length: 20 }, () => runtime.endInput(id, process, call)));
    expect(await ended(runtime, id, process)).toEqual({ kind: "exited", exitCode: 0 });
  });

  it.each([SIGINT, SIGTERM, SIGKILL])(
    "distinguishes a process that signal %i ended from one that exited",
    async (signal) => {
      const { runtime, programs, id } = setup();
      const process = await spawn(runtime, id, programs.waits());
      expect(await runtime.inspect(id, process, call)).toEqual({ kind: "running" });
      await runtime.signal(id, process, { signal, scope: "process" }, call);
      expect(await ended(runtime, id, process)).toEqual({ kind: "signaled", signal });
      await runtime.signal(id, process, { signal, scope: "process" }, call);
    },
  );

  it.each([SIGTERM, SIGKILL])("takes signal %i while its container is paused, which stays paused", async (signal) => {
    const { runtime, programs, newContainer } = harnessOf();
    const container = await newContainer();
    const { id } = container;
    await runtime.start(container, call);
    const process = await spawn(runtime, id, programs.waits());
    await runtime.pause(id, call);
    await runtime.signal(id, process, { signal, scope: "process" }, call);
    expect(await runtime.liveness(id, call)).toBe("paused");
    await runtime.resume(id, call);
    expect(await ended(runtime, id, process)).toEqual({ kind: "signaled", signal });
    await runtime.stop(id, call);
  });

  it("refuses a program or a directory that is not there", async () => {
    const { runtime, programs, id } = setup();
    expect(await reasonOf(spawn(runtime, id, ["no-such-program"]))).toBe("INVALID_ARGUMENT");
    const spec = { name: randomToken(26), directory, outputPath, env: { PATH }, cwd: "/nowhere" };
    await rm(join(directory, "input"), { force: true });
    for (const file of ["exit", "waiter", "child"]) await rm(join(directory, file), { force: true });
    expect(await reasonOf(runtime.spawn(id, { ...spec, argv: programs.waits() }, call))).toBe("INVALID_ARGUMENT");
  });

  it("counts it among the processes of its container, and ends it with the container", async () => {
    const { runtime, programs, newContainer } = harnessOf();
    const container = await newContainer();
    await runtime.start(container, call);
    const process = await spawn(runtime, container.id, programs.waits());
    await until(async () => (await runtime.processes(container.id, call)) >= 1);
    await runtime.stop(container.id, call);
    await until(async () => (await runtime.inspect(container.id, process, call)).kind !== "running");
  });

  if (traits.shell === "no") return;

  it("has nothing in its environment but what it was given (D19)", async () => {
    const { runtime, programs, id } = setup();
    const process = await spawn(runtime, id, programs.printsEnvironment());
    await ended(runtime, id, process);
    const names = (await output())
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0] ?? "");
    const allowed = new Set(["PATH", "HOME", "PWD", "SHLVL", "_", "OLDPWD", ...traits.addedVariables]);
    expect(names.filter((name) => !allowed.has(name))).toEqual([]);
  });

  it("goes on at the beginning of the file when that was cut to nothing", async () => {
    const { runtime, id } = setup();
    const process = await spawn(runtime, id, sh("echo first; read line; echo $line"));
    await until(async () => (await output()) === "first\n");
    await truncate(outputPath, 0);
    await type("second\n");
    await ended(runtime, id, process);
    expect(await output()).toBe("second\n");
  });

  it("stops a whole tree and lets it go on", async () => {
    const { runtime, id } = setup();
    const process = await spawn(runtime, id, sh("(while :; do printf x; sleep 0.02; done) & wait"));
    await until(async () => (await output()).length > 2);
    await runtime.signal(id, process, { signal: 19, scope: "tree" }, call);
    const size = (await output()).length;
    await run(runtime, id, sh("sleep 0.2"));
    expect((await output()).length).toBe(size);
    await runtime.signal(id, process, { signal: 18, scope: "tree" }, call);
    await until(async () => (await output()).length > size);
    await runtime.signal(id, process, { signal: SIGKILL, scope: "tree" }, call);
    expect(await ended(runtime, id, process)).toEqual({ kind: "signaled", signal: SIGKILL });
  });

  it("kills what ignores SIGTERM, forks twice and leaves its session (attack 37)", async () => {
    const { runtime, id } = setup();
    const seconds = String(100_000 + Math.floor(Math.random() * 800_000));
    const script = `trap '' TERM; (setsid sh -c "trap '' TERM; sleep ${seconds} & sleep ${seconds}" &); sleep ${seconds}`;
    const process = await spawn(runtime, id, sh(script));
    await until(async () => (await countProcesses(runtime, id, seconds)) >= 3);
    await runtime.signal(id, process, { signal: SIGKILL, scope: "tree" }, call);
    expect(await countProcesses(runtime, id, seconds)).toBe(0);
    expect((await ended(runtime, id, process)).kind).toBe("signaled");
  });

  it("runs a process on a terminal that can be resized and interrupted", async () => {
    const { runtime, id } = setup();
    // It waits by itself: bash may spin without end if an interrupt comes between the fork and the exec of a child.
    const script = `trap 'stty size; exit 3' INT; test -t 0 && echo "terminal $(stty size)"; while :; do read -r _; done`;
    const terminal = await runtime.openTerminal(
      id,
      { argv: ["/bin/bash", "-c", script], env: { PATH, HOME: "/" }, cwd: "/workspace", deadlineMs: 60_000 },
      { columns: 91, rows: 31 },
      call,
    );
    let shown = "";
    terminal.onOutput((data) => {
      shown += data.toString("utf8");
    });
    await until(() => shown.includes("terminal 31 91"));
    terminal.resize({ columns: 120, rows: 40 });
    expect(await terminal.write(Buffer.from("\u0003"), 1000)).toBe(1);
    expect(await terminal.exit).toEqual({ kind: "exited", exitCode: 3 });
    expect(shown).toContain("40 120");
  });
}
