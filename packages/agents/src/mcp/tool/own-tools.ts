import { DIFF } from "./diff-tool.ts";
import { DISCARD_FORK, FORK, SANDBOX_INFO, USE_SANDBOX } from "./fork-tools.ts";
import type { OwnTool } from "./own-tool.ts";
import { ROLLBACK, TURN, TURNS, UNDO } from "./turn-tools.ts";

/** What the server offers beyond the catalog of the sandbox, by name. */
export const OWN_TOOLS: ReadonlyMap<string, OwnTool> = new Map(
  [TURN, TURNS, ROLLBACK, UNDO, DIFF, FORK, USE_SANDBOX, DISCARD_FORK, SANDBOX_INFO].map((tool) => [
    tool.definition.name,
    tool,
  ]),
);
