import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { hasReason } from "../error/sandbox-error.ts";
import type { CommandRunner, CommandSpec } from "../command/command-runner.ts";

/** How a kind of runner is asked for each behaviour. */
export interface CommandRunnerHarness {
  readonly runner: CommandRunner;
  readonly programs: {
    prints(output: { readonly stdout: string; readonly stderr: string; readonly exitCode: number }): CommandSpec;
    /** Writes its standard input to its standard output, and exits when the input ends. */
    copiesInput(): CommandSpec;
    /** Does nothing until it is killed. */
    waits(): CommandSpec;
    /** Ends itself by SIGKILL. */
    killsItself(): CommandSpec;
    missing(): CommandSpec;
  };
}

/** What every `CommandRunner` does. */
export function commandRunnerSuite(name: string, create: () => CommandRunnerHarness): void {
  describe(`CommandRunner: ${name}`, () => {
    const { runner, programs } = create();

    it.each([0, 1, 42, 128, 255])("answers with exit code %i and both outputs apart", async (exitCode) => {
      const result = await runner.run(programs.prints({ stdout: "to out", stderr: "to err", exitCode }));
      expect(result).toEqual({ exitCode, stdout: "to out", stderr: "to err", droppedBytes: 0 });
    });

    it("gives the input to the program and closes it", async () => {
      const result = await runner.run({ ...programs.copiesInput(), stdin: "line\n" });
      expect(result).toMatchObject({ exitCode: 0, stdout: "line\n" });
    });

    it("ends a program's input where none is given", async () => {
      expect(await runner.run(programs.copiesInput())).toMatchObject({ exitCode: 0, stdout: "" });
    });

    it("keeps what fits and counts what does not", async () => {
      const spec = programs.prints({ stdout: "0123456789", stderr: "abc", exitCode: 0 });
      const result = await runner.run({ ...spec, maxOutputBytes: 4 });
      expect(result).toEqual({ exitCode: 0, stdout: "0123", stderr: "abc", droppedBytes: 6 });
    });

    it("throws COMMAND_MISSING where there is no such program, from run and from start", async () => {
      await expect(runner.run(programs.missing())).rejects.toMatchObject({ reason: "COMMAND_MISSING" });
      await expect(runner.start(programs.missing())).rejects.toMatchObject({ reason: "COMMAND_MISSING" });
    });

    it("throws COMMAND_OUTCOME_UNKNOWN where a program was ended by a signal", async () => {
      await expect(runner.run(programs.killsItself())).rejects.toMatchObject({
        reason: "COMMAND_OUTCOME_UNKNOWN",
        metadata: { signal: "SIGKILL" },
      });
    });

    it("ends a program at its deadline and says so", async () => {
      const started = await runner.start({ ...programs.waits(), deadlineMs: 50 });
      expect(await started.exit).toEqual({ kind: "signaled", signal: "SIGKILL", deadline: "passed" });
      const run = runner.run({ ...programs.waits(), deadlineMs: 50 });
      await expect(run).rejects.toThrow(/deadline of 50 ms/);
    });

    it("does not take a very long deadline for none", async () => {
      const command = await runner.start({ ...programs.copiesInput(), deadlineMs: Number.MAX_SAFE_INTEGER });
      await delay(50);
      command.stdin.end("still here");
      expect(await text(command.stdout)).toBe("still here");
      expect(await command.exit).toEqual({ kind: "exited", exitCode: 0 });
    });

    it("ends a program when the caller's signal says so", async () => {
      const cancel = new AbortController();
      const run = runner.run(programs.waits(), { signal: cancel.signal });
      setTimeout(() => {
        cancel.abort();
      }, 20);
      const thrown = await run.catch((error: unknown) => error);
      expect(hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN")).toBe(true);
      expect(String(thrown)).toContain("cancelled");
    });

    it("starts nothing under a signal that was given already", async () => {
      const signal = AbortSignal.abort();
      await expect(runner.run(programs.waits(), { signal })).rejects.toMatchObject({ name: "AbortError" });
      await expect(runner.start(programs.waits(), { signal })).rejects.toMatchObject({ name: "AbortError" });
    });

    it("kills a started program, and leaves an ended one alone", async () => {
      const command = await runner.start(programs.waits());
      command.kill("SIGTERM");
      expect(await command.ended).toEqual({ kind: "signaled", signal: "SIGTERM", deadline: "kept" });
      expect(await command.exit).toEqual({ kind: "signaled", signal: "SIGTERM", deadline: "kept" });
      command.kill();
    });

    it("lets input and output be streamed", async () => {
      const command = await runner.start(programs.copiesInput());
      command.stdin.write("one ");
      command.stdin.end("two");
      expect(await text(command.stdout)).toBe("one two");
      expect(await text(command.stderr)).toBe("");
      expect(await command.exit).toEqual({ kind: "exited", exitCode: 0 });
    });
  });
}
