import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import type { Started } from "./exec.suite.ts";
import {
  call,
  countProcesses,
  execSpec,
  finish,
  ignoreOutput,
  type RuntimeTraits,
  run,
  sh,
  until,
} from "./harness.suite.ts";

let sequence = 7_000_000;
/** An argument of `sleep` that no other process has. */
function uniqueSeconds(): string {
  sequence += 1;
  return String(sequence);
}

/** Trees that do not want to end: each keeps processes of this argument alive by another trick. */
const TREES: readonly {
  readonly name: string;
  readonly script: (seconds: string) => string;
  readonly processes: number;
}[] = [
  { name: "children of the process", script: (s) => `sleep ${s} & sleep ${s}; wait`, processes: 2 },
  { name: "a child in a session of its own", script: (s) => `setsid sleep ${s} & sleep ${s}; wait`, processes: 2 },
  {
    name: "a double-forked child",
    script: (s) => `(setsid sh -c 'sleep ${s} & sleep ${s}' &); sleep ${s}`,
    processes: 3,
  },
  {
    name: "a process that ignores SIGTERM",
    script: (s) => `trap '' TERM; (trap '' TERM; while :; do sleep ${s}; done) & while :; do sleep ${s}; done`,
    processes: 2,
  },
  {
    name: "a child in a session of its own without environment",
    script: (s) => `setsid env -i /bin/sleep ${s} & sleep ${s}; wait`,
    processes: 2,
  },
  {
    name: "a tree that goes on forking",
    script: (s) => `setsid /bin/sh -c 'f() { (sleep ${s} &); sleep 0.2; f; }; f' & sleep ${s}`,
    processes: 3,
  },
];

/** How processes are ended, and that this is true of all they started. */
export function killSuite(started: () => Started, traits: RuntimeTraits): void {
  const setup = () => {
    const { harness, container } = started();
    return { runtime: harness.runtime, programs: harness.programs, id: container.id, rootPath: container.rootPath };
  };

  it("ends a process at its deadline", async () => {
    const { runtime, programs, id } = setup();
    const { exit } = await run(runtime, id, programs.waits(), { deadlineMs: 200 });
    expect(exit).toEqual({ kind: "timed_out" });
  });

  it("does not take a very long deadline for none", async () => {
    const { runtime, programs, id } = setup();
    const deadlineMs = Number.MAX_SAFE_INTEGER;
    const { exit } = await run(runtime, id, programs.prints({ stdout: "", stderr: "", exitCode: 0 }), { deadlineMs });
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
  });

  it("kills a process on request, once and again", async () => {
    const { runtime, programs, id } = setup();
    const execution = ignoreOutput(await runtime.exec(id, execSpec(programs.waits()), call));
    await Promise.all([execution.kill(), execution.kill()]);
    expect(await execution.exit).toEqual({ kind: "killed" });
    await execution.kill();
  });

  it("kills nothing but what was asked for", async () => {
    const { runtime, programs, id } = setup();
    const other = await runtime.exec(id, execSpec(programs.copiesInput()), call);
    const execution = ignoreOutput(await runtime.exec(id, execSpec(programs.waits()), call));
    await execution.kill();
    const { stdout, exit } = await finish(other, "still here");
    expect(stdout.toString()).toBe("still here");
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
  });

  it("leaves an ended process's exit as it was", async () => {
    const { runtime, programs, id } = setup();
    const execution = await runtime.exec(id, execSpec(programs.prints({ stdout: "", stderr: "", exitCode: 3 })), call);
    await finish(execution);
    await execution.kill();
    expect(await execution.exit).toEqual({ kind: "exited", exitCode: 3 });
  });

  it("reports the end of a process at its deadline although its outputs are not read", async () => {
    const { runtime, rootPath, id, programs } = setup();
    await run(runtime, id, programs.writesFile("text", "x".repeat(1000)));
    expect((await stat(join(rootPath, "workspace/text"))).size).toBe(1000);
    const execution = await runtime.exec(id, execSpec(programs.printsFile("text"), { deadlineMs: 500 }), call);
    expect(await execution.exit).toEqual({ kind: "exited", exitCode: 0 });
  });

  if (traits.shell === "no") return;

  it.each(TREES)("ends $name at the deadline", async ({ script, processes }) => {
    const { runtime, id } = setup();
    const seconds = uniqueSeconds();
    const execution = ignoreOutput(await runtime.exec(id, execSpec(sh(script(seconds)), { deadlineMs: 1500 }), call));
    await until(async () => (await countProcesses(runtime, id, seconds)) >= processes, 1400);
    expect(await execution.exit).toEqual({ kind: "timed_out" });
    expect(await countProcesses(runtime, id, seconds)).toBe(0);
  });

  it.each(TREES)("ends $name on request", async ({ script, processes }) => {
    const { runtime, id } = setup();
    const seconds = uniqueSeconds();
    const execution = ignoreOutput(await runtime.exec(id, execSpec(sh(script(seconds))), call));
    await until(async () => (await countProcesses(runtime, id, seconds)) >= processes);
    await execution.kill();
    expect(await countProcesses(runtime, id, seconds)).toBe(0);
    expect(await execution.exit).toEqual({ kind: "killed" });
  });

  it("gives a process that is asked to end the time to do so", async () => {
    const { runtime, id } = setup();
    const script = "trap 'echo cleaned up; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    const { stdout, exit } = await run(runtime, id, sh(script), { deadlineMs: 500 });
    expect(stdout.toString()).toBe("ready\ncleaned up\n");
    expect(exit).toEqual({ kind: "timed_out" });
  });

  it("ends a flood that is not read at its deadline", async () => {
    const { runtime, id } = setup();
    const execution = await runtime.exec(id, execSpec(sh("cat /dev/zero"), { deadlineMs: 300 }), call);
    const startedMs = performance.now();
    expect(await execution.exit).toEqual({ kind: "timed_out" });
    expect(performance.now() - startedMs).toBeLessThan(8000);
    execution.stdout.resume();
    await delay(0);
  });
}
