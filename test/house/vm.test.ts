import { describe, expect, it } from "@jest/globals";
import { parseSources } from "../../scripts/bootstrap/apt-sources.mjs";
import { parseArguments } from "../../scripts/vm/arguments.mjs";
import { readVerdict } from "../../scripts/vm/boot.mjs";
import { deriveSources } from "../../scripts/vm/sources.mjs";

describe("readVerdict", () => {
  it("believes a tally only with VM-EXIT 0 after it", () => {
    expect(readVerdict("x\r\n7 passed, 0 failed, 2 skipped\r\nVM-EXIT 0\r\n")).toEqual({
      exitCode: 0,
      line: "7 passed, 0 failed, 2 skipped",
    });
  });

  it.each([
    ["a guest that broke down", "7 passed, 0 failed\r\nKernel panic", "7 passed, 1 failed", /without VM-EXIT/],
    ["a guest that never ran", "", "0 passed, 1 failed", /without VM-EXIT/],
    ["failed tests", "5 passed, 2 failed\r\nVM-EXIT 1\r\n", "5 passed, 2 failed", /VM-EXIT 1/],
    ["no tally", "VM-EXIT 0", "0 passed, 1 failed", /VM-EXIT 0/],
    ["a tally that its exit code belies", "5 passed, 2 failed\nVM-EXIT 0\n", "5 passed, 2 failed", /VM-EXIT 0/],
  ])("fails for %s", (_, text, line, problem) => {
    expect(readVerdict(text)).toEqual({ exitCode: 1, line, problem: expect.stringMatching(problem) });
  });
});

describe("deriveSources", () => {
  it("takes release, backports and security from the machine's own mirrors, with contrib", () => {
    const text = [
      "deb [signed-by=/k.gpg] http://mirror.example.org/debian bookworm main",
      "deb http://mirror.example.org/security bookworm-security main contrib",
      "deb http://tools.example.org/x nodistro main",
    ].join("\n");
    const derived = deriveSources(parseSources([{ name: "a.list", text }]), "bookworm");
    expect(derived.mirror).toBe("http://mirror.example.org/debian");
    expect(derived.text.split("\n\n").map((entry) => entry.split("\n").slice(1, 4))).toEqual([
      ["URIs: http://mirror.example.org/debian", "Suites: bookworm", "Components: main contrib"],
      ["URIs: http://mirror.example.org/debian", "Suites: bookworm-backports", "Components: main contrib"],
      ["URIs: http://mirror.example.org/security", "Suites: bookworm-security", "Components: main contrib"],
    ]);
  });

  it("refuses a machine whose sources do not name its release", () => {
    expect(() => deriveSources([], "bookworm")).toThrow(/bookworm/);
  });
});

describe("parseArguments of vm-test", () => {
  it("runs everything, or what is named", () => {
    expect(parseArguments([])).toEqual({ isRefresh: false, projects: ["contract", "e2e"], jestArguments: [] });
    expect(parseArguments(["--refresh", "--project", "e2e", "journey"])).toEqual({
      isRefresh: true,
      projects: ["e2e"],
      jestArguments: ["journey"],
    });
    expect(parseArguments(["--smoke"]).projects).toEqual([]);
    expect(() => parseArguments(["--project", "unit"])).toThrow(/unit/);
  });
});
