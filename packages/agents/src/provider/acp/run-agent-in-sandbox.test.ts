import { existsSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Turn, TurnOptions } from "@turnbox/client";
import { createDirectorySandbox } from "../launch/directory-sandbox.suite.ts";
import { runAgentInSandbox } from "./run-agent-in-sandbox.ts";

const MAIN = join(import.meta.dirname, "scripted-agent-main.suite.ts");

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "turnbox-agent-")));
  await writeFile(join(root, "input.txt"), "first\nsecond\n");
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

function recordingSandbox() {
  const outcomes: (string | undefined)[] = [];
  const turn = async ({ outcome }: TurnOptions = {}): Promise<Turn> => {
    outcomes.push(outcome);
    return { number: outcomes.length } as Turn;
  };
  const { files, processes } = createDirectorySandbox();
  const stderrPaths: string[] = [];
  const launch: typeof processes.launch = (binary, options) => {
    stderrPaths.push(...(options?.args ?? []).filter((arg) => arg.endsWith(".stderr")));
    return processes.launch(binary, options);
  };
  return { outcomes, stderrPaths, sandbox: { files, processes: { launch }, turn } };
}

describe("runAgentInSandbox", () => {
  it("seals a turn after each prompt, as failed where the agent did not end it by itself", async () => {
    const { outcomes, sandbox } = recordingSandbox();
    const controller = new AbortController();
    const agent = await runAgentInSandbox(sandbox, {
      command: process.execPath,
      args: [MAIN],
      root,
      onPermission: ({ toolCall }) => {
        if (toolCall.title?.includes("never.txt") === true) controller.abort();
        return "allow-once";
      },
    });
    expect(await agent.prompt("work")).toMatchObject({ stopReason: "end_turn", turn: { number: 1 } });
    expect(await readdir(join(root, "out"))).toEqual(["note.txt", "result.txt"]);
    const cancelled = await agent.prompt("wait", { signal: controller.signal });
    expect(cancelled).toMatchObject({ stopReason: "cancelled", turn: { number: 2 } });
    await expect(agent.prompt("fail")).rejects.toMatchObject({ reason: "INTERNAL" });
    expect(await agent.stderr()).toContain("the scripted agent is up\n");
    await expect(agent.prompt("die")).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
    expect(outcomes).toEqual(["succeeded", "failed", "failed", "failed"]);
    await agent[Symbol.asyncDispose]();
  });

  it("leaves nothing behind where the agent does not come up", async () => {
    const { sandbox, stderrPaths } = recordingSandbox();
    const starting = runAgentInSandbox(sandbox, { command: "sh", args: ["-c", "echo broken >&2; exit 1"], root });
    await expect(starting).rejects.toThrow("broken");
    expect(stderrPaths.map(existsSync)).toEqual([false]);
  });
});
