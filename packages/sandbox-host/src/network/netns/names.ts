import { createHash } from "node:crypto";

/** The directory of the namespaces of `ip netns`. */
export const NETNS_DIRECTORY = "/run/netns";

/** The names of everything that a host has in the machine's network; all of them contain the host's own key. */
export interface NetworkNames {
  /** The namespace in which the links of all sessions end. */
  readonly router: string;
  /** The router's way out, in the machine's own namespace; at most 15 characters, as for any interface. */
  readonly uplink: string;
  /** The table in the machine's own namespace. */
  readonly table: string;
  netns(container: string): string;
  /** The container of a namespace; undefined if the namespace is not one of this host's. */
  containerOf(netns: string): string | undefined;
}

/** Names of the host that keeps its data in a directory. */
export function createNetworkNames(dataDirectory: string): NetworkNames {
  const key = createHash("sha256").update(dataDirectory).digest("hex").slice(0, 8);
  const router = `tbx-${key}`;
  return {
    router,
    uplink: `tbxu${key}`,
    table: `tbx_${key}`,
    netns: (container) => `${router}-${container}`,
    containerOf: (netns) => (netns.startsWith(`${router}-`) ? netns.slice(router.length + 1) : undefined),
  };
}

/** The router's end of a container's link. */
export function linkOf(container: string): string {
  return `tbx${container.slice(0, 12)}`;
}
