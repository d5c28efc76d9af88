import { SandboxError } from "@turnbox/core";
import { BASH_TOOL } from "./bash-tool.ts";
import { GIT_TOOLS } from "./git/git-tools.ts";
import type { Tool } from "./schema.ts";
import { TEXT_TOOLS } from "./text/text-tools.ts";

/** All tools there are: their names, aliases, tiers, parameters and limits. Nothing else decides what a call may contain. */
export const CATALOG = [...TEXT_TOOLS, BASH_TOOL, ...GIT_TOOLS] as const satisfies readonly Tool[];

export type ToolName = (typeof CATALOG)[number]["name"];
export type CatalogTool = (typeof CATALOG)[number];

const BY_NAME: ReadonlyMap<string, CatalogTool> = new Map(
  CATALOG.flatMap((tool) => [tool.name, ...tool.aliases].map((name) => [name, tool] as const)),
);

/** The tool of this name or alias, or `TOOL_NOT_FOUND`. */
export function findTool(name: string): CatalogTool {
  const tool = BY_NAME.get(name);
  if (tool !== undefined) return tool;
  throw new SandboxError("TOOL_NOT_FOUND", `there is no tool ${JSON.stringify(name)}`, {
    metadata: { tool: name, known: CATALOG.map((known) => known.name).join(", ") },
  });
}
