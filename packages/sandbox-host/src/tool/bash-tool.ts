import { objectOf, pathSchema, type Tool } from "./schema.ts";

/** Longest a tool call may ask to run. */
export const MAX_TOOL_TIMEOUT_MS = 3_600_000;
export const DEFAULT_BASH_TIMEOUT_MS = 120_000;

export const BASH_TOOL = {
  name: "bash",
  aliases: ["Bash", "shell"],
  tier: 2,
  effect: "writes",
  description:
    "Runs a command with bash in the sandbox and returns its output and exit code. Files and background processes " +
    "persist between calls; variables, the working directory and other state of the shell do not.",
  schema: objectOf(
    {
      cmd: { type: "string", description: "The command, as one bash script.", minLength: 1, maxLength: 100_000 },
      timeout_ms: {
        type: "integer",
        description:
          "How long it may run, in milliseconds; everything it started is killed then (exit code 124). Not with background.",
        minimum: 1,
        maximum: MAX_TOOL_TIMEOUT_MS,
        default: DEFAULT_BASH_TIMEOUT_MS,
      },
      cwd: { ...pathSchema("The working directory. Absolute, or relative to /workspace."), default: "/workspace" },
      env: { type: "object", description: "Further environment variables.", additionalProperties: { type: "string" } },
      background: {
        type: "boolean",
        description:
          "Answer at once and let the command run on. The answer has its process id, for kill, and the file that its output goes to.",
        default: false,
      },
    },
    ["cmd"],
  ),
} as const satisfies Tool;
