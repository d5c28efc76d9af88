import { SandboxError } from "@turnbox/core";
import type { Instance } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { TurnboxClients } from "../../client.ts";
import { listInstances } from "./list-instances.ts";
import { ambiguous } from "../../turnbox/sandbox-reference.ts";

/** The one instance that a full id, or a unique prefix of one, means. */
export async function resolveInstance(
  server: TurnboxClients,
  reference: string,
  call: { readonly signal: AbortSignal },
): Promise<Instance> {
  const instances = await listInstances(server, call);
  const exact = instances.find(({ instanceId }) => instanceId === reference);
  if (exact !== undefined) return exact;
  const matches = reference === "" ? [] : instances.filter(({ instanceId }) => instanceId.startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError("INSTANCE_NOT_FOUND", `no instance is called ${JSON.stringify(reference)}`, {
      metadata: { reference },
    });
  }
  if (others.length === 0) return first;
  throw ambiguous(
    "instance",
    reference,
    matches.map(({ instanceId }) => instanceId),
  );
}
