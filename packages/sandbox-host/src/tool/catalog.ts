import { SandboxError } from "@turnbox/core";

/** A JSON schema of an object: what a model is told, and what parameters are checked against. */
export interface ToolSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, ParameterSchema>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
}

export type ParameterSchema =
  | { readonly type: "string"; readonly description: string; readonly minLength?: number; readonly maxLength?: number }
  | { readonly type: "integer"; readonly description: string; readonly minimum: number; readonly maximum: number }
  | { readonly type: "boolean"; readonly description: string }
  | {
      readonly type: "object";
      readonly description: string;
      readonly additionalProperties: { readonly type: "string" };
    };

export interface Tool {
  readonly name: string;
  readonly aliases: readonly string[];
  /** 1: done in a file worker; 2: runs code, in the sandbox. */
  readonly tier: 1 | 2;
  /** Tools that only read are not in the ledger. */
  readonly effect: "reads" | "writes";
  readonly description: string;
  readonly schema: ToolSchema;
}

/** Longest a tool call may ask to run. */
export const MAX_TOOL_TIMEOUT_MS = 3_600_000;

/** The only place that knows tools: their names, aliases, tiers, parameters and limits. */
export const CATALOG = [
  {
    name: "bash",
    aliases: ["Bash"],
    tier: 2,
    effect: "writes",
    description:
      "Runs a command with bash in the sandbox and returns its output and exit code. Files and background processes " +
      "persist between calls; variables, the working directory and other state of the shell do not.",
    schema: {
      type: "object",
      properties: {
        cmd: { type: "string", description: "The command, as one bash script.", minLength: 1, maxLength: 100_000 },
        timeout_ms: {
          type: "integer",
          description:
            "How long it may run, in milliseconds; everything it started is killed then (exit code 124). Default 120000.",
          minimum: 1,
          maximum: MAX_TOOL_TIMEOUT_MS,
        },
        cwd: {
          type: "string",
          description: "The working directory. Default /workspace.",
          minLength: 1,
          maxLength: 4096,
        },
        env: {
          type: "object",
          description: "Further environment variables.",
          additionalProperties: { type: "string" },
        },
      },
      required: ["cmd"],
      additionalProperties: false,
    },
  },
] as const satisfies readonly Tool[];

export type ToolName = (typeof CATALOG)[number]["name"];

/** The tool of this name or alias, or `TOOL_NOT_FOUND`. */
export function findTool(name: string): Tool & { readonly name: ToolName } {
  const tool = CATALOG.find(
    (candidate) => candidate.name === name || (candidate.aliases as readonly string[]).includes(name),
  );
  if (tool === undefined) {
    throw new SandboxError("TOOL_NOT_FOUND", `there is no tool ${JSON.stringify(name)}`, {
      metadata: { tool: name, known: CATALOG.map((known) => known.name).join(", ") },
    });
  }
  return tool;
}
