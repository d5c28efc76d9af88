import type { HostConnection } from "../control/host-connection.ts";
import type { ControlCall, ForkResult, ForkSandboxRequest, SandboxSession } from "../control/sandbox-control.ts";
import { onInstance } from "./list-sandboxes.ts";
import type { Demand, Slots } from "./placement/slots.ts";

/** The instance that holds the parent, which is where children are made. */
export interface ForkParent {
  readonly host: HostConnection;
  readonly instanceId: string;
  readonly slots: Slots;
}

/** What children will take is the host's to say; until it has, each of them takes a slot and nothing else. */
const SLOT_ONLY: Demand = { cpus: 0, memoryBytes: 0, diskBytes: 0 };

/**
 * Forks on the parent's host, under the host's own ids and the caller's key: the host remembers what became of it, so
 * that a caller that did not get the answer repeats the call. Every child has a slot while the call runs; those that were made
 * keep theirs until a report of the host includes them.
 */
export async function forkOn(
  { host, instanceId, slots }: ForkParent,
  request: ForkSandboxRequest,
  call: ControlCall,
): Promise<readonly ForkResult[]> {
  using claims = new DisposableStack();
  for (let child = 0; child < request.count; child += 1) claims.use(slots.claim(instanceId, SLOT_ONLY));
  const results = await host.forkSandbox(request, call);
  return results.map((result) => {
    if (result.kind === "failed") return result;
    slots.claim(instanceId, demandOf(result.sandbox.session)).keep();
    return { ...result, sandbox: onInstance(result.sandbox, instanceId) };
  });
}

const demandOf = ({ resources, quotaBytes }: SandboxSession): Demand => ({
  cpus: resources.cpus ?? 0,
  memoryBytes: resources.memoryBytes ?? 0,
  diskBytes: quotaBytes,
});
