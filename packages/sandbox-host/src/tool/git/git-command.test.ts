import { describe, expect, it } from "@jest/globals";
import { findTool } from "../catalog.ts";
import { checkParameters, type Parameters } from "../parameters.ts";
import { gitArguments } from "./git-command.ts";
import type { GitToolName } from "./git-tools.ts";

describe("gitArguments", () => {
  it.each<[GitToolName, Parameters, readonly string[]]>([
    ["git_status", {}, ["status", "--short", "--branch"]],
    ["git_diff", {}, ["diff", "--"]],
    ["git_diff", { ref: "a..b", staged: true, paths: ["-x", "b"] }, ["diff", "--staged", "a..b", "--", "-x", "b"]],
    ["git_log", {}, ["log", "--date=iso-strict", "--decorate=short", "-n", "10", "--"]],
    ["git_log", { ref: "v1", n: 3 }, ["log", "--date=iso-strict", "--decorate=short", "-n", "3", "v1", "--"]],
    ["git_show", {}, ["show", "--date=iso-strict", "HEAD", "--"]],
    ["git_show", { ref: "HEAD~1:a.txt" }, ["show", "--date=iso-strict", "HEAD~1:a.txt", "--"]],
    ["git_add", { paths: ["--all"] }, ["add", "--", "--all"]],
    ["git_commit", { message: "-x", all: true }, ["commit", "--all", "-m", "-x"]],
    [
      "git_clone",
      { url: "u", dir: "d", branch: "b", depth: 1 },
      ["clone", "--branch", "b", "--depth", "1", "--", "u", "d"],
    ],
    ["git_fetch", {}, ["fetch"]],
    ["git_fetch", { branch: "main" }, ["fetch", "--", "origin", "main"]],
    ["git_pull", { remote: "up", branch: "main" }, ["pull", "--no-edit", "--", "up", "main"]],
    ["git_push", { remote: "up", branch: "a:b", set_upstream: true }, ["push", "--set-upstream", "--", "up", "a:b"]],
  ])("%s %j", (tool, parameters, expected) => {
    checkParameters(findTool(tool), parameters);
    expect(gitArguments(tool, parameters)).toEqual(expected);
  });

  it.each<[GitToolName, string]>([
    ["git_diff", "ref"],
    ["git_log", "ref"],
    ["git_show", "ref"],
    ["git_clone", "url"],
    ["git_clone", "dir"],
    ["git_clone", "branch"],
    ["git_fetch", "remote"],
    ["git_fetch", "branch"],
    ["git_pull", "remote"],
    ["git_pull", "branch"],
    ["git_push", "remote"],
    ["git_push", "branch"],
  ])("%s refuses a %s that is an option (D13)", (tool, name) => {
    const parameters = { ...(tool === "git_clone" ? { url: "u" } : {}), [name]: "--output=/etc/passwd" };
    expect(() => {
      checkParameters(findTool(tool), parameters);
    }).toThrow(`params.${name}: must match`);
  });
});
