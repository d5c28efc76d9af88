import { hasReason, type Turnbox } from "@turnbox/client";
import type { OpenedSandbox } from "./workspace.ts";

/** The label that says in a list of sandboxes where one comes from. */
const LABELS = { "made-by": "turnbox-mcp" } as const;

export interface McpSandboxChoice {
  /** One that is there. */
  readonly sandboxId?: string;
  readonly template: string;
  readonly name?: string;
  readonly ttlMs?: number;
}

/** Finds or makes the sandbox of a session. One that was found belongs to another owner. */
export function openForMcp(turnbox: Turnbox, choice: McpSandboxChoice): () => Promise<OpenedSandbox> {
  const { sandboxId, ...options } = choice;
  return async () => {
    if (sandboxId !== undefined) return { sandbox: await turnbox.get(sandboxId), ownership: "borrowed" };
    try {
      return { sandbox: await turnbox.create({ ...options, labels: LABELS }), ownership: "own" };
    } catch (thrown) {
      if (choice.name === undefined || !hasReason(thrown, "SANDBOX_EXISTS")) throw thrown;
      return { sandbox: await turnbox.get(choice.name), ownership: "borrowed" };
    }
  };
}
