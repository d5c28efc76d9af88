import type { HostConnection } from "../control/host-connection.ts";
import type { ControlCall, ForkResult, ForkSandboxRequest, SandboxSession } from "../control/sandbox-control.ts";
import { onInstance } from "./list-sandboxes.ts";
import type { Demand, Slots } from "./placement/slots.ts";

/** The instance that holds the parent, which is where children are made. */
export interface ForkPlace {
  readonly host: HostConnection;
  readonly instanceId: string;
  readonly slots: Slots;
}

/** What children will take is the host's to say; until it has, each of them takes a place and nothing else. */
const PLACE_ONLY: Demand = { cpus: 0, memoryBytes: 0, diskBytes: 0 };

/**
 * Forks on the parent's host, under the host's own ids and the caller's key: the host remembers what became of it, so
 * that whoever did not get the answer repeats the call. Every child has a place while the call runs; those that were made
 * keep theirs until a report of the host includes them.
 */
export async function forkOn(
  { host, instanceId, slots }: ForkPlace,
  request: ForkSandboxRequest,
  call: ControlCall,
): Promise<readonly ForkResult[]> {
  using places = new DisposableStack();
  for (let child = 0; child < request.count; child += 1) places.use(slots.claim(instanceId, PLACE_ONLY));
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
