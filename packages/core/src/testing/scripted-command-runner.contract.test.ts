import { describe, expect, it } from "@jest/globals";
import type { CommandSpec } from "../command/command-runner.ts";
import { commandRunnerSuite } from "./command-runner-suite.ts";
import { createScriptedCommandRunner, type ScriptedAnswer } from "./scripted-command-runner.ts";

const answering = (answer: ScriptedAnswer): CommandSpec => ({
  command: "scripted",
  args: [JSON.stringify(answer)],
  deadlineMs: 10_000,
});

const createRunner = () => createScriptedCommandRunner((spec) => JSON.parse(spec.args[0] ?? "") as ScriptedAnswer);

commandRunnerSuite("scripted", () => ({
  runner: createRunner(),
  programs: {
    prints: (output) => answering({ kind: "exits", ...output }),
    copiesInput: () => answering({ kind: "copies_input" }),
    waits: () => answering({ kind: "waits" }),
    killsItself: () => answering({ kind: "signaled", signal: "SIGKILL" }),
    missing: () => answering({ kind: "missing" }),
  },
}));

describe("a scripted runner", () => {
  it("records what it was asked for", async () => {
    const runner = createRunner();
    const spec = answering({ kind: "exits" });
    await runner.run(spec);
    expect(runner.calls).toEqual([spec]);
  });
});
