import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { findTool } from "../catalog.ts";
import { checkParameters, type Parameters } from "../parameters.ts";
import type { GitToolName } from "./git-tools.ts";
import { GIT_ENVIRONMENT, gitCommandLine } from "./run-git.ts";

describe("gitCommandLine", () => {
  let directory = "";
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-git-"));
  });
  afterEach(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  const git = (
    tool: GitToolName,
    parameters: Parameters,
    more: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
  ) => {
    checkParameters(findTool(tool), parameters);
    const [program, ...args] = gitCommandLine(tool, parameters);
    const env = { PATH: process.env["PATH"], HOME: directory, ...GIT_ENVIRONMENT, ...more.env };
    const { status, stdout, stderr } = spawnSync(program, args, {
      cwd: join(directory, more.cwd ?? ""),
      env,
      stdio: ["ignore", "pipe", "pipe"],
      encoding: "utf8",
      timeout: 30_000,
    });
    return { status, stdout, stderr };
  };

  it("does a day's work: clone of a bare repository, add, commit, log, show, diff, push, pull (D15)", () => {
    spawnSync("git", ["init", "--bare", "-b", "main", join(directory, "bare.git")], { timeout: 30_000 });
    expect(git("git_clone", { url: join(directory, "bare.git"), dir: "one" })).toMatchObject({ status: 0 });
    spawnSync("git", ["-C", join(directory, "one"), "checkout", "-b", "main"], { timeout: 30_000 });
    writeFileSync(join(directory, "one/a.txt"), "hello\n");
    const at = { cwd: "one" };
    expect(git("git_status", {}, at).stdout).toContain("?? a.txt");
    expect(git("git_add", { paths: ["."] }, at)).toMatchObject({ status: 0 });
    expect(git("git_diff", { staged: true }, at).stdout).toContain("+hello");
    expect(git("git_commit", { message: "first\n\nmore" }, at)).toMatchObject({ status: 0 });
    expect(git("git_push", { branch: "main", set_upstream: true }, at)).toMatchObject({ status: 0 });
    expect(git("git_clone", { url: join(directory, "bare.git"), dir: "two", branch: "main" })).toMatchObject({
      status: 0,
    });
    writeFileSync(join(directory, "one/a.txt"), "hello again\n");
    expect(git("git_commit", { message: "second", all: true }, at)).toMatchObject({ status: 0 });
    expect(git("git_push", {}, at)).toMatchObject({ status: 0 });
    expect(git("git_fetch", {}, { cwd: "two" })).toMatchObject({ status: 0 });
    expect(git("git_pull", {}, { cwd: "two" })).toMatchObject({ status: 0 });
    expect(git("git_log", { n: 1 }, { cwd: "two" }).stdout).toMatch(/Author: agent <agent@turnbox\.invalid>[^]*second/);
    expect(git("git_show", { ref: "HEAD~1:a.txt" }, { cwd: "two" }).stdout).toBe("hello\n");
  });

  it("does not overrule a name that is configured or given", () => {
    mkdirSync(join(directory, "repo"));
    const at = { cwd: "repo" };
    spawnSync("git", ["-C", join(directory, "repo"), "init"], { timeout: 30_000 });
    spawnSync("git", ["-C", join(directory, "repo"), "config", "user.name", "Ada"], { timeout: 30_000 });
    writeFileSync(join(directory, "repo/a"), "1");
    git("git_add", { paths: ["a"] }, at);
    expect(git("git_commit", { message: "m" }, { ...at, env: { GIT_AUTHOR_EMAIL: "ada@example.org" } }).status).toBe(0);
    expect(git("git_log", {}, at).stdout).toContain("Author: Ada <ada@example.org>");
  });

  it("ends with 127 and without output if there is no git", () => {
    const [program, ...args] = gitCommandLine("git_status", {});
    const { status, stdout, stderr } = spawnSync(`/bin/${program}`, args, {
      env: { PATH: join(directory, "nothing") },
      stdio: ["ignore", "pipe", "pipe"],
      encoding: "utf8",
      timeout: 30_000,
    });
    expect({ status, stdout, stderr }).toEqual({ status: 127, stdout: "", stderr: "" });
  });
});
