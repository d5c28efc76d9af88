import { hasReason } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import { isTrustedHost } from "../../config.ts";
import type { OpenedSandbox } from "../../mcp/workspace.ts";
import { createToolDefinitions } from "../../sandbox/tool/create-tool-definitions.ts";
import type { ToolDescription } from "../../sandbox/tool/tool-definitions.ts";
import type { Turnbox } from "../../turnbox/turnbox.ts";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { listHosts } from "../resolve/trusted-hosts.ts";

/** By which whoever looks at the list of sandboxes sees where one comes from. */
const LABELS = { "made-by": "turnbox-mcp" } as const;

export interface McpSandboxChoice {
  /** One that is there. */
  readonly sandboxId?: string;
  readonly template: string;
  readonly name?: string;
  readonly ttlMs?: number;
}

/** Finds or makes the sandbox of a session. One that was found belongs to somebody else. */
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

/**
 * The catalog without a sandbox, for hosts that list the tools whenever they start: asked from a sandbox-host on this
 * machine. Undefined where there is none that may be asked.
 */
export async function previewCatalog(
  server: TurnboxClients,
  { host: connect }: Pick<Invocation, "host">,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly ToolDescription[] | undefined> {
  try {
    const hosts = await listHosts(server, { signal });
    const near = hosts.find(({ url }) => isTrustedHost(url, server.endpoint));
    if (near === undefined) return undefined;
    using host = connect({ url: near.url, token: server.endpoint.token });
    const { tools } = await host.tools.listTools({ sessionId: "" }, { signal, timeoutMs: CALL_MS.read });
    return [...createToolDefinitions(tools)];
  } catch (thrown) {
    if (hasReason(thrown, "PERMISSION_DENIED", "UNAUTHENTICATED", "HOST_UNREACHABLE", "UNIMPLEMENTED"))
      return undefined;
    throw thrown;
  }
}
