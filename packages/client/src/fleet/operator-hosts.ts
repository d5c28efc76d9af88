import { SandboxError } from "@turnbox/core";
import type { HostClients } from "../client.ts";
import { isTrustedHost } from "../config.ts";
import type { Endpoint } from "../connection.ts";
import type { ServerCallOptions, ServerLink } from "../sandbox/link/server-link.ts";
import { listInstances } from "./list-instances.ts";

/** A host of the fleet that has an address. */
export interface FleetHost {
  readonly instanceId: string;
  readonly url: string;
}

/**
 * The fleet's hosts, as one who has the server's token reaches them: only if server and host are both on this machine, since
 * a server elsewhere could name any address.
 */
export interface OperatorHosts {
  /** Every host that has an address. */
  list(options: ServerCallOptions): Promise<readonly FleetHost[]>;
  isTrusted(host: Pick<FleetHost, "url">): boolean;
  /** Refuses if one of them is elsewhere. `what` begins the sentence, as in "templates are removed". */
  assertTrusted(what: string, hosts: readonly FleetHost[]): void;
  /** Connects with the server's token; its user disposes of it. */
  open(host: Pick<FleetHost, "url">): HostClients;
}

export interface OperatorHostsOptions {
  readonly server: ServerLink;
  readonly host: (endpoint: Endpoint) => HostClients;
}

export function createOperatorHosts({ server, host: connect }: OperatorHostsOptions): OperatorHosts {
  const { endpoint } = server.clients;
  const isTrusted: OperatorHosts["isTrusted"] = ({ url }) => isTrustedHost(url, endpoint);
  return {
    list: async (options) => {
      const instances = await server.call(listInstances, options);
      return instances.flatMap(({ id, url }) => (url === undefined ? [] : [{ instanceId: id, url }]));
    },
    isTrusted,
    assertTrusted: (what, hosts) => {
      const foreign = hosts.find((host) => !isTrusted(host));
      if (foreign === undefined) return;
      throw new SandboxError(
        "UNIMPLEMENTED",
        `${what} only where the server and its hosts are on this machine; the host ${foreign.url} of ${endpoint.url} is not asked`,
        { metadata: { url: foreign.url } },
      );
    },
    open: ({ url }) => connect({ url, token: endpoint.token }),
  };
}
