import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Clock, systemClock } from "@turnbox/core";
import { SandboxSchema } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { createServices, newWorld, type World } from "../cli/fake-services.suite.ts";
import { openForMcp } from "../cli/mcp/mcp-sandbox.ts";
import type { ConnectionFactory } from "../connection.ts";
import { withSandboxErrors } from "../sandbox-error-transport.ts";
import { Turnbox } from "../turnbox/turnbox.ts";
import { createMcpSession, type McpSessionSpec } from "./mcp-session.ts";

/** The sandbox that the services in memory make. */
export const MADE = "fleet:i1:new";
/** One that is there. */
export const PRESENT = "fleet:i1:abc123";

const BASH_SCHEMA = {
  type: "object",
  properties: { cmd: { type: "string", description: "The command." } },
  required: ["cmd"],
  additionalProperties: false,
};

/** Services in memory with a sandbox that can be made, forks that can be reached, and a tool that has an effect. */
export function newMcpWorld(): World {
  const world = newWorld();
  const ids = [MADE, "fleet:i1:child0", "fleet:i1:child1"];
  world.sandboxes.push(
    ...ids.map((sandboxId) =>
      create(SandboxSchema, { sandboxId, session: { state: SessionState.ACTIVE, base: "mini@1", generation: 1 } }),
    ),
  );
  world.tools = [
    ...world.tools,
    { name: "bash", tier: 2, description: "Runs a command.", readOnly: false, inputSchema: BASH_SCHEMA },
  ];
  return world;
}

export const connectTo =
  (world: World): ConnectionFactory =>
  ({ url }, peer) => {
    const transport = createRouterTransport(createServices(world)[peer]);
    const close = (): void => undefined;
    return { transport: withSandboxErrors(transport, { peer, url }), close, [Symbol.dispose]: close };
  };

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
  const turnbox = Turnbox.connect({ url: "http://127.0.0.1:7700", token: "home-token", connect: connectTo(world) });
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
