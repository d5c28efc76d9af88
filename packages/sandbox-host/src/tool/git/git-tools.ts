import { type ListSchema, type NumberSchema, objectOf, pathSchema, type TextSchema, type Tool } from "../schema.ts";

const MAX_COMMITS = 100;
export const GIT_DEFAULTS = { commits: 10 } as const;

/** Nothing that git could take for an option. */
const NO_OPTION = "^[^\\-]";

const ref = (description: string): TextSchema => ({
  type: "string",
  description,
  minLength: 1,
  maxLength: 1024,
  // No spaces and control characters, which no ref has.
  pattern: "^[^\\-\\s\\p{Cc}][^\\s\\p{Cc}]*$",
});
const paths = (description: string, minItems: number): ListSchema => ({
  type: "array",
  description,
  items: { type: "string", minLength: 1, maxLength: 4096 },
  minItems,
  maxItems: 1000,
});
const commits: NumberSchema = {
  type: "integer",
  description: "How many commits to show.",
  minimum: 1,
  maximum: MAX_COMMITS,
  default: GIT_DEFAULTS.commits,
};
const cwd: TextSchema = {
  ...pathSchema("The directory of the repository. Absolute, or relative to /workspace."),
  default: "/workspace",
};
const remote = ref("The remote, or its address.");

/** Git runs in the sandbox, hooks and configuration of the repository included: each of these may change files. */
const GIT = { aliases: [], tier: 2, effect: "writes" } as const;

export const GIT_TOOLS = [
  {
    ...GIT,
    name: "git_status",
    description: "Shows the branch and what has changed in the work tree, in git's short form.",
    schema: objectOf({ cwd }, []),
  },
  {
    ...GIT,
    name: "git_diff",
    description: "Shows changes of the work tree, of what is staged, or between commits, as a unified diff.",
    schema: objectOf(
      {
        ref: ref("A commit to compare with, or two as a..b. Without it: with what is staged."),
        staged: { type: "boolean", description: "Show what is staged.", default: false },
        paths: paths("Only these files and directories.", 0),
        cwd,
      },
      [],
    ),
  },
  {
    ...GIT,
    name: "git_log",
    description: "Shows commits, the newest first.",
    schema: objectOf(
      {
        ref: ref("Where to begin, or a range as a..b. Without it: HEAD."),
        n: commits,
        paths: paths("Only commits that touch these files and directories.", 0),
        cwd,
      },
      [],
    ),
  },
  {
    ...GIT,
    name: "git_show",
    description: "Shows a commit with its changes, or a file of a commit as ref:path.",
    schema: objectOf(
      {
        ref: ref("The commit, or commit:path. Without it: HEAD."),
        paths: paths("Only the changes of these files and directories.", 0),
        cwd,
      },
      [],
    ),
  },
  {
    ...GIT,
    name: "git_add",
    description: "Stages files for the next commit.",
    schema: objectOf({ paths: paths('Files and directories; ["."] for everything.', 1), cwd }, ["paths"]),
  },
  {
    ...GIT,
    name: "git_commit",
    description: "Makes a commit of what is staged.",
    schema: objectOf(
      {
        message: { type: "string", description: "The message.", minLength: 1, maxLength: 100_000 },
        all: { type: "boolean", description: "Stage all changed files that git knows first.", default: false },
        cwd,
      },
      ["message"],
    ),
  },
  {
    ...GIT,
    name: "git_clone",
    description: "Clones a repository. Addresses on the network work where the sandbox's network policy allows them.",
    schema: objectOf(
      {
        url: {
          type: "string",
          description: "The address, or a path.",
          minLength: 1,
          maxLength: 4096,
          pattern: NO_OPTION,
        },
        dir: {
          type: "string",
          description: "The new directory, relative to cwd. Without it: named after the repository.",
          minLength: 1,
          maxLength: 4096,
          pattern: NO_OPTION,
        },
        branch: ref("The branch or tag to check out."),
        depth: {
          type: "integer",
          description: "Fetch only so many commits.",
          minimum: 1,
          maximum: 1_000_000,
        },
        cwd,
      },
      ["url"],
    ),
  },
  {
    ...GIT,
    name: "git_fetch",
    description: "Fetches from a remote, without changing the work tree.",
    schema: objectOf({ remote, branch: ref("What to fetch. Without it: what is configured."), cwd }, []),
  },
  {
    ...GIT,
    name: "git_pull",
    description: "Fetches from a remote and merges into the current branch.",
    schema: objectOf({ remote, branch: ref("The branch of the remote. Without it: what is configured."), cwd }, []),
  },
  {
    ...GIT,
    name: "git_push",
    description: "Sends commits to a remote.",
    schema: objectOf(
      {
        remote,
        branch: ref("The branch to send, or local:remote. Without it: what is configured."),
        set_upstream: {
          type: "boolean",
          description: "Remember the remote's branch for the next time.",
          default: false,
        },
        cwd,
      },
      [],
    ),
  },
] as const satisfies readonly Tool[];

export type GitToolName = (typeof GIT_TOOLS)[number]["name"];
