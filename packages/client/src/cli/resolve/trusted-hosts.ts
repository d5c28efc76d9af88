import { SandboxError } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import { isTrustedHost } from "../../config.ts";
import { listInstances } from "./list-instances.ts";

/** An instance whose host has an address. */
export interface FleetHost {
  readonly instanceId: string;
  readonly url: string;
}

/** Every host of the server's fleet that can be reached. */
export async function listHosts(
  server: TurnboxClients,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly FleetHost[]> {
  const instances = await listInstances(server, { signal });
  return instances.filter(({ url }) => url !== "").map(({ instanceId, url }) => ({ instanceId, url }));
}

/**
 * Refuses what the server has no call for where a host is not on this machine: the server's token goes to no machine but
 * its own. `what` begins the sentence, as in "templates are removed".
 */
export function assertTrusted(what: string, hosts: readonly FleetHost[], { endpoint }: TurnboxClients): void {
  const foreign = hosts.find(({ url }) => !isTrustedHost(url, endpoint));
  if (foreign === undefined) return;
  throw new SandboxError(
    "UNIMPLEMENTED",
    `${what} only where the server and its hosts are on this machine; the host ${foreign.url} of ${endpoint.url} is not asked`,
    { metadata: { url: foreign.url } },
  );
}
