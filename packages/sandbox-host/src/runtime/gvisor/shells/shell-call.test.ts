import { describe, expect, it } from "@jest/globals";
import { parseShellCall, scriptFor } from "./shell-call.ts";

const ENV = { PATH: "/bin", HOME: "/root" };
const CALL = { script: "echo hi", env: ENV, cwd: "/workspace" };
const spec = (argv: readonly [string, ...string[]]) => ({ argv, env: ENV, cwd: "/", deadlineMs: 1 });

describe("a call that a waiting shell can take", () => {
  it("is bash with a script and nothing else", () => {
    expect(parseShellCall(spec(["bash", "-c", "a"]))).toMatchObject({ script: "a" });
    for (const argv of [
      ["sh", "-c", "a"],
      ["bash", "-c", "a", "b"],
      ["bash", "a"],
      ["bash", "-c"],
    ] as const)
      expect(parseShellCall(spec(argv))).toBeUndefined();
  });

  it("is short enough to be written in one piece", () => {
    expect(parseShellCall(spec(["bash", "-c", "é".repeat(8192)]))).toBeDefined();
    expect(parseShellCall(spec(["bash", "-c", "é".repeat(8193)]))).toBeUndefined();
  });

  it("is evaluated in a shell below if it sets limits, and in the shell itself otherwise", () => {
    const told = (script: string) => scriptFor({ ...CALL, script }, { env: ENV, greeting: "g", limits: "intact" });
    expect(told("ulimit -v 1000; make")).toContain(';(eval "$BASH_EXECUTION_STRING")');
    expect(told("echo hi")).toContain(';eval "$BASH_EXECUTION_STRING"');
  });

  it("is one block of plain characters where it fits", () => {
    const text = scriptFor({ ...CALL, script: "echo 'a'" }, { env: ENV, greeting: "g", limits: "intact" }) ?? "";
    expect(text).toMatch(/^BASH_EXECUTION_STRING='echo '\\''a'\\''';cd [ -~]*$/);
    expect(text.length).toBe(512);
  });

  it.each(["echo é", "echo a\necho b", "echo \x01", `echo ${"a".repeat(500)}`])(
    "has its script as it is behind two parts with the lengths in bytes: %j",
    (script) => {
      const text = Buffer.from(scriptFor({ ...CALL, script }, { env: ENV, greeting: "g", limits: "intact" }) ?? "");
      const lengthIn = (part: Buffer): number => Number(/^LC_ALL=C read -r -N (\d+) /.exec(part.toString())?.[1]);
      const then = text.subarray(512, 512 + lengthIn(text));
      expect(then.toString()).toMatch(/eval "\$BASH_EXECUTION_STRING"$/);
      const last = text.subarray(512 + then.length);
      expect(last.toString()).toBe(script);
      expect(last.length).toBe(lengthIn(then));
    },
  );

  it.each(["ls /", "git commit -m 'one; two' --amend", 'grep -rn "a b" src *.ts', "python3.11 x.py "])(
    "is done by the program alone: %s",
    (script) => {
      expect(scriptFor({ ...CALL, script }, { env: ENV, greeting: "g", limits: "intact" })).toContain(
        ` exec ${script};`,
      );
    },
  );

  it.each([
    "echo hi",
    "time ls",
    "ls; ls",
    "ls | cat",
    "ls > out",
    "ls $HOME",
    'ls "$HOME"',
    "A=1 ls",
    "./run",
    "ls 'a",
    "ls\nls",
    "ls `x`",
    "ls # all",
    "ls &",
    "! ls",
    "{ ls; }",
  ])("is done by the shell: %s", (script) => {
    expect(scriptFor({ ...CALL, script }, { env: ENV, greeting: "g", limits: "intact" })).not.toContain("exec ");
  });

  it("is done by the shell where the environment may bring it functions or traps", () => {
    for (const name of ["BASH_ENV", "BASH_FUNC_ls%%", "ENV"]) {
      const env = { ...ENV, [name]: "x" };
      expect(scriptFor({ ...CALL, env, script: "ls /" }, { env, greeting: "g", limits: "intact" })).not.toContain(
        "exec ",
      );
    }
  });

  it.each([
    ["another PATH", { ...ENV, PATH: "/usr/bin" }],
    ["a file that shells read at their start", { ...ENV, BASH_ENV: "/x" }],
    ["another language", { ...ENV, LC_ALL: "C" }],
    ["a name that is no shell variable", { ...ENV, "a.b": "1" }],
  ])("is none with %s", (_what, env) => {
    expect(scriptFor({ ...CALL, env }, { env: ENV, greeting: "g", limits: "intact" })).toBeUndefined();
  });
});
