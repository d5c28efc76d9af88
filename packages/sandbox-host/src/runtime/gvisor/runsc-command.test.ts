import { describe, expect, it } from "@jest/globals";
import { classifyStartFailure, isKnownProtocol, parseVersion, runscCommand } from "./runsc-command.ts";

const failed = (argv: string, why: string) =>
  `executing processes for container: executing command "${argv}" in sandbox: ${why}\n`;

describe("a runsc command", () => {
  it("has the flags without which files are lost or stale", () => {
    const request = { runscPath: "runsc", runscRoot: "/state", args: ["ps", "a"], deadlineMs: 5 };
    expect(runscCommand(request)).toEqual({
      command: "runsc",
      args: [
        "--root=/state",
        "--network=none",
        "--platform=systrap",
        "--overlay2=none",
        "--file-access=shared",
        "ps",
        "a",
      ],
      deadlineMs: 5,
    });
  });
});

describe("the version of runsc", () => {
  it.each([
    ["runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n", { version: "0.0~20240729.0", supported: "yes" }],
    ["runsc version release-20250505.0\nspec: 1.1.0-rc.1\n", { version: "release-20250505.0", supported: "yes" }],
    ["runsc version release-20231218.0\n", { version: "release-20231218.0", supported: "too_old" }],
    ["runsc version 20240101.0", { version: "20240101.0", supported: "yes" }],
    ["something else", undefined],
    ["", undefined],
  ])("is read from %j", (output, expected) => {
    expect(parseVersion(output)).toEqual(expected);
  });
});

describe("the protocol of a sentry", () => {
  it("is known of one release only", () => {
    expect(isKnownProtocol("0.0~20240729.0")).toBe(true);
    expect(isKnownProtocol("release-20250505.0")).toBe(false);
  });
});

describe("why a process did not start", () => {
  it.each([
    [
      failed("/bin/sh -c x", 'failed to find initial working directory "/nosuch": no such file or directory'),
      "no_directory",
    ],
    [failed("/nosuch -c x", "failed to load /nosuch: no such file or directory"), "no_program"],
    [failed("nosuch", 'error finding executable "nosuch" in PATH []: no such file or directory'), "no_program"],
    [failed("/workspace", "failed to load /workspace: permission denied"), "no_program"],
    [failed("/x", "failed to load /x: exec format error"), "no_program"],
    [failed("x", "connecting to control server at PID 7820: connection refused"), "lost"],
    ["loading sandbox: file does not exist\n", "lost"],
    ['executing processes for container: cannot execute in container "a" in state paused\n', "paused"],
    ["something new\n", "other"],
  ])("is read from %j", (stderr, expected) => {
    expect(classifyStartFailure(stderr)).toBe(expected);
  });

  it("is not read from the program's own arguments", () => {
    const argv = 'echo "failed to find initial working directory" in sandbox: connecting to control server';
    expect(classifyStartFailure(failed(argv, "failed to load echo: no such file or directory"))).toBe("no_program");
  });
});
