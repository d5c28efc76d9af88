import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Clock, Turnbox } from "@turnbox/client";
import { connectServices, createServices, newMcpWorld, type World } from "@turnbox/client/fake";
import { systemClock } from "@turnbox/client/internal";
import { openForMcp } from "./open-sandbox.ts";
import { createMcpSession, type McpSessionSpec } from "./mcp-session.ts";

/** One that is there. */
export const PRESENT = "fleet:i1:abc123";

export interface McpFixture extends AsyncDisposable {
  readonly world: World;
  readonly client: Client;
  readonly problems: string[];
  call(name: string, params?: Record<string, unknown>): Promise<CallToolResult>;
}

export interface FixtureOptions extends Partial<Pick<McpSessionSpec, "atEnd" | "turns" | "leaseMs" | "catalog">> {
  readonly world?: World;
  readonly sandboxId?: string;
  readonly clock?: Clock;
}

export function createSpec(world: World, options: FixtureOptions = {}): McpSessionSpec & { problems: string[] } {
  const turnbox = Turnbox.connect({
    url: "http://127.0.0.1:7700",
    token: "home-token",
    connect: connectServices(createServices(world)),
  });
  const { sandboxId, clock = systemClock, world: _, ...more } = options;
  const problems: string[] = [];
  return {
    version: "0.0.0",
    open: openForMcp(turnbox, { template: "mini", ...(sandboxId === undefined ? {} : { sandboxId }) }),
    atEnd: "destroy",
    turns: "by the model",
    clock,
    problems,
    onProblem: (message) => problems.push(message),
    ...more,
  };
}

/** The official client on one end, the server on services in memory on the other. */
export async function openMcp(options: FixtureOptions = {}): Promise<McpFixture> {
  const { world = newMcpWorld() } = options;
  const spec = createSpec(world, options);
  const session = createMcpSession(spec, "session-1");
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "0" });
  await session.mcp.connect(far);
  await client.connect(near);
  return {
    world,
    client,
    problems: spec.problems,
    call: async (name, params = {}) => (await client.callTool({ name, arguments: params })) as CallToolResult,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await session[Symbol.asyncDispose]();
    },
  };
}
