import { existsSync } from "node:fs";
import { copyFile, mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { CommandRunner, CommandSpec, RunSpec } from "../command/command-runner.ts";
import type { CommandRunnerHarness } from "./command-runner-suite.ts";

const sh = (script: string, ...args: string[]): RunSpec => ({
  command: "/bin/sh",
  args: ["-c", script, "sh", ...args],
  deadlineMs: 10_000,
});

/** The behaviours that the suite of all command runners asks for, as programs of this machine. */
export function shellPrograms(stdio: NonNullable<CommandSpec["stdio"]>): CommandRunnerHarness["programs"] {
  return {
    prints: ({ stdout, stderr, exitCode }) => ({
      ...sh('printf %s "$1"; printf %s "$2" >&2; exit "$3"', stdout, stderr, String(exitCode)),
      stdio,
    }),
    copiesInput: () => ({ ...sh("cat"), stdio }),
    waits: () => ({ ...sh("sleep 1000"), stdio }),
    killsItself: () => ({ ...sh("kill -s KILL $$"), stdio }),
    missing: () => ({ command: "/nonexistent/program", args: [], deadlineMs: 1000, stdio }),
  };
}

/** What every runner does that runs programs of this machine. */
export function childProcessSuite(name: string, runner: CommandRunner): void {
  describe(`programs as children of ${name}`, () => {
    let directory: string;
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), "command-runner-"));
    });
    afterEach(async () => {
      await rm(directory, { recursive: true });
    });

    it("get the environment that was given, PATH, and nothing of the service's own (D19)", async () => {
      process.env["TURNBOX_TEST_SECRET"] = "leaked";
      const result = await runner.run({ command: "env", args: [], env: { GIVEN: "1" }, deadlineMs: 5000 });
      delete process.env["TURNBOX_TEST_SECRET"];
      const names = result.stdout
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0]);
      expect(names.toSorted()).toEqual(["GIVEN", "PATH"]);
    });

    it("get each argument as it is, through no shell (D40)", async () => {
      const args = ["$(id)", "`id`", "; id", "a b", "", "*", "-n"];
      const result = await runner.run({ command: "printf", args: ["[%s]", ...args], deadlineMs: 5000 });
      expect(result.stdout).toBe(args.map((arg) => `[${arg}]`).join(""));
    });

    it("are refused as INVALID_ARGUMENT where an argument cannot be passed", async () => {
      await expect(runner.run(sh("true", "a\0b"))).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
      await expect(runner.run(sh("true", "x".repeat(4_000_000)))).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    });

    it("hold no descriptors of files that the service has open", async () => {
      const secretPath = join(directory, "secret");
      await using secret = await open(secretPath, "w");
      const result = await runner.run(sh("ls -l /proc/self/fd"));
      expect(secret.fd).toBeGreaterThan(2);
      expect(result.stdout).toContain("/proc/");
      expect(result.stdout).not.toContain(secretPath);
    });

    it("work in the directory that was given", async () => {
      expect((await runner.run({ ...sh("pwd"), cwd: directory })).stdout.trim()).toBe(directory);
    });

    it("answer when they have ended although a descendant holds their output", async () => {
      const startedMs = performance.now();
      const result = await runner.run(sh("sleep 1000 & echo $!"));
      expect(performance.now() - startedMs).toBeLessThan(5000);
      const pid = Number(result.stdout);
      expect(pid).toBeGreaterThan(1);
      process.kill(pid, "SIGKILL");
    });

    it("tell their end apart from the end of their streams", async () => {
      const command = await runner.start({ ...sh("sleep 1000 & echo $!; exit 3"), deadlineMs: 300 });
      const chunks: Buffer[] = [];
      command.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
      command.stderr.resume();
      expect(await command.ended).toEqual({ kind: "exited", exitCode: 3 });
      expect(command.stdout.closed).toBe(false);
      expect(await command.exit).toEqual({ kind: "exited", exitCode: 3 });
      process.kill(Number(Buffer.concat(chunks).toString()), "SIGKILL");
    });

    it("die with their whole process group", async () => {
      const pidFile = join(directory, "pid");
      const command = await runner.start(
        sh(`sleep 1000 & echo $! > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; wait`),
      );
      await until(() => existsSync(pidFile));
      command.kill();
      await command.exit;
      const child = Number(await readFile(pidFile, "utf8"));
      await until(async () =>
        /^\d+ \(.*\) Z|^$/.test(await readFile(`/proc/${String(child)}/stat`, "utf8").catch(() => "")),
      );
    });

    it("start when their file is no longer held open for writing, and not while it is", async () => {
      const command = join(directory, "program");
      await copyFile("/bin/true", command);
      const spec = { command, args: [], deadlineMs: 10_000 };
      const writer = await open(command, "r+");
      await expect(runner.run(spec)).rejects.toMatchObject({ reason: "OVERLOADED" });
      const starting = runner.run(spec);
      await writer.close();
      expect(await starting).toMatchObject({ exitCode: 0 });
    });

    it("leave a daemon behind when their output goes to a file", async () => {
      const outputPath = join(directory, "out");
      const result = await runner.run({ ...sh("sleep 1000 & echo $!; echo problem >&2; exit 7"), outputPath });
      expect(result).toEqual({ exitCode: 7, stdout: "", stderr: "", droppedBytes: 0 });
      const [pid = "", problem] = (await readFile(outputPath, "utf8")).split("\n");
      expect(problem).toBe("problem");
      expect(existsSync(`/proc/${pid}`)).toBe(true);
      process.kill(Number(pid), "SIGKILL");
    });
  });
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(10);
  }
}
