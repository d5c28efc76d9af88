import { create } from "@bufbuild/protobuf";
import { SandboxSchema } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { newWorld, type World } from "./fake-services.ts";

/** The sandbox that the services in memory make. */
export const MADE = "fleet:i1:new";

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
