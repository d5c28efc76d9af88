import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import { withoutMembarrier } from "./without-membarrier.ts";

const runner = createChildCommandRunner();
const call = { signal: AbortSignal.timeout(20_000) };
const run = (command: string, ...args: readonly string[]) =>
  runner.run({ ...withoutMembarrier({ command, args }), deadlineMs: 10_000 }, call);

describe("a command without membarrier", () => {
  it("runs as itself, with its arguments and its exit code", async () => {
    const script = 'printf "%s|" "$0" "$@"; exit 7';
    const result = await run("/bin/sh", "-c", script, "name", "a b", "");
    expect(result).toMatchObject({ exitCode: 7, stdout: "name|a b||", stderr: "" });
  });

  it("finds no such call in the kernel, and so do its children, and nothing else is changed", async () => {
    const question = 'printf "%s " $(perl -e \'print syscall(shift, 0, 0, 0) < 0 ? 0 + $! : 0\' "$1")';
    const ask = (number: string) => run("/bin/sh", "-c", `${question}; echo`, "sh", number);
    const membarrier = process.arch === "x64" ? "324" : "283";
    const getpid = process.arch === "x64" ? "39" : "172";
    expect((await ask(membarrier)).stdout.trim()).toBe("38");
    expect((await ask(getpid)).stdout.trim()).toBe("0");
  });

  it("is the command itself where there is no perl, and on processors that are not known", () => {
    const command = { command: "/bin/true", args: ["x"] };
    expect(withoutMembarrier(command, "/nowhere/perl")).toEqual(command);
    expect(withoutMembarrier(command, "/usr/bin/perl", "riscv64")).toEqual(command);
  });

  it("says that a program that is not there is not there", async () => {
    const { exitCode, stderr } = await run("/nowhere/program");
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("/nowhere/program: No such file");
  });
});
