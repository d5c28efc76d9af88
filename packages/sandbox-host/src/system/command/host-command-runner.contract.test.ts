import { readdir } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, it } from "@jest/globals";
import type { RunSpec } from "@turnbox/core";
import { childProcessSuite, commandRunnerSuite, shellPrograms } from "@turnbox/core/testing/suites";
import { HelperProcess } from "../helper/helper-process.ts";
import { HostCommandRunner } from "./host-command-runner.ts";

const helper = new HelperProcess();
const runners = { alone: new HostCommandRunner(), withHelper: new HostCommandRunner({ helper }) };
afterAll(async () => {
  for (const runner of Object.values(runners)) await runner[Symbol.asyncDispose]();
  helper[Symbol.dispose]();
});

for (const [name, stdio, runner] of [
  ["child process on fifos", "fifos", runners.alone],
  ["child process of the helper process", "sockets", runners.withHelper],
] as const)
  commandRunnerSuite(name, () => ({ runner, programs: shellPrograms(stdio) }));

childProcessSuite("the helper process", runners.withHelper);

describe.each([
  { of: "the service", runner: runners.alone },
  { of: "the helper process", runner: runners.withHelper },
])("programs on fifos, as children of $of", ({ runner }) => {
  it("can open their outputs again by name on fifos", async () => {
    const spec = sh("cat > /dev/stdout; echo problem > /dev/stderr");
    const result = await runner.run({ ...spec, stdio: "fifos", stdin: "input" });
    expect(result).toMatchObject({ stdout: "input", stderr: "problem\n" });
  });

  it("leave no descriptor behind in the service", async () => {
    const countOpen = async () => (await readdir("/proc/self/fd")).length;
    const many = async () => {
      await Promise.all(Array.from({ length: 24 }, () => runner.run({ ...sh("cat"), stdio: "fifos", stdin: "x" })));
    };
    await many();
    const before = await countOpen();
    await many();
    await until(async () => (await countOpen()) <= before);
  });
});

const sh = (script: string): RunSpec => ({ command: "/bin/sh", args: ["-c", script], deadlineMs: 10_000 });

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(10);
  }
}
