import type { CallToolResult, Tool, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import { SandboxError } from "@turnbox/client";
import { z } from "zod";
import type { Workspace } from "../workspace.ts";

export interface OwnToolContext {
  readonly workspace: Workspace;
  /** The same for the same request: the key under which a change is made. */
  readonly toolCallId: string;
  readonly signal: AbortSignal;
}

/** What a tool of this server answers: the same facts for a reader and for a program. */
export interface Answer {
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A tool that the server adds to the catalog of the sandbox. */
export interface OwnTool {
  readonly definition: Tool;
  call(params: unknown, context: OwnToolContext): Promise<CallToolResult>;
}

interface Spec<Input extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly hints: ToolAnnotations;
  readonly input: Input;
  run(params: z.output<Input>, context: OwnToolContext): Promise<Answer>;
}

/** The schema that a model sees and the one that its arguments are held against are the same. */
export function defineTool<Input extends z.ZodObject>(spec: Spec<Input>): OwnTool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(spec.input);
  return {
    definition: {
      name: spec.name,
      title: spec.title,
      description: spec.description,
      inputSchema: inputSchema as Tool["inputSchema"],
      annotations: spec.hints,
    },
    call: async (params, context) => {
      const parsed = spec.input.safeParse(withTextReferences(params));
      if (!parsed.success) throw new SandboxError("INVALID_ARGUMENT", z.prettifyError(parsed.error));
      const { text, facts } = await spec.run(parsed.data, context);
      return { content: [{ type: "text", text }], structuredContent: { ...facts } };
    },
  };
}

/** A place in the history: a turn by its number, or any snapshot by its id. */
export const REFERENCE = z.string().min(1).max(128);
const REFERENCE_FIELDS: ReadonlySet<string> = new Set(["to", "from"]);

/** Models write a turn's number with and without quotes; both are understood. */
function withTextReferences(params: unknown): unknown {
  if (typeof params !== "object" || params === null) return params ?? {};
  return Object.fromEntries(
    Object.entries(params).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "number" && REFERENCE_FIELDS.has(name) ? String(value) : value,
    ]),
  );
}

/** `3`, `#3` and `turn 3` are turns; the rest is the id of a snapshot. */
export function toTarget(reference: string): number | string {
  const digits = /^(?:#|turn[ -]?)?(\d{1,9})$/.exec(reference)?.[1];
  return digits === undefined ? reference : Number(digits);
}
