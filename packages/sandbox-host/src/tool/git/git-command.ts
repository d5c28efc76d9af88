import type { Parameters } from "../parameters.ts";
import { GIT_DEFAULTS, type GitToolName } from "./git-tools.ts";

/** Parameters that have passed the catalog's schema. */
interface Checked {
  /** The parameter as arguments: none if it was not given. */
  readonly text: (name: string, ...before: readonly string[]) => readonly string[];
  readonly flag: (name: string, argument: string) => readonly string[];
  /** `--` and the paths, so that no path is taken for an option. */
  readonly paths: () => readonly string[];
  readonly has: (name: string) => boolean;
}

const DEFAULT_REMOTE = "origin";

const ARGUMENTS: Readonly<Record<GitToolName, (checked: Checked) => readonly string[]>> = {
  git_status: () => ["status", "--short", "--branch"],
  git_diff: ({ text, flag, paths }) => ["diff", ...flag("staged", "--staged"), ...text("ref"), ...paths()],
  git_log: ({ text, paths, has }) => [
    "log",
    "--date=iso-strict",
    "--decorate=short",
    ...(has("n") ? text("n", "-n") : ["-n", String(GIT_DEFAULTS.commits)]),
    ...text("ref"),
    ...paths(),
  ],
  git_show: ({ text, paths, has }) => [
    "show",
    "--date=iso-strict",
    ...(has("ref") ? text("ref") : ["HEAD"]),
    ...paths(),
  ],
  git_add: ({ paths }) => ["add", ...paths()],
  git_commit: ({ text, flag }) => ["commit", ...flag("all", "--all"), ...text("message", "-m")],
  git_clone: ({ text }) => [
    "clone",
    ...text("branch", "--branch"),
    ...text("depth", "--depth"),
    "--",
    ...text("url"),
    ...text("dir"),
  ],
  git_fetch: (checked) => ["fetch", ...from(checked)],
  git_pull: (checked) => ["pull", "--no-edit", ...from(checked)],
  git_push: (checked) => ["push", ...checked.flag("set_upstream", "--set-upstream"), ...from(checked)],
};

/** A branch needs a remote before it. */
function from({ text, has }: Checked): readonly string[] {
  if (has("remote")) return ["--", ...text("remote"), ...text("branch")];
  return has("branch") ? ["--", DEFAULT_REMOTE, ...text("branch")] : [];
}

/** The arguments of git for a call, without the options that all commands have. */
export function gitArguments(tool: GitToolName, parameters: Parameters): readonly string[] {
  const has = (name: string): boolean => parameters[name] !== undefined;
  return ARGUMENTS[tool]({
    has,
    text: (name, ...before) => (has(name) ? [...before, String(parameters[name])] : []),
    flag: (name, argument) => (parameters[name] === true ? [argument] : []),
    paths: () => ["--", ...((parameters["paths"] as readonly string[] | undefined) ?? [])],
  });
}
