import { isLoopback } from "@turnbox/rpc/server";

const ANY_ADDRESS: readonly string[] = ["0.0.0.0", "::"];

/**
 * The address of something that a host serves, as others reach it. What a host calls its own loopback, or any of its
 * addresses, is somewhere else for all but the host: there the address that the host itself is reached by stands.
 */
export function reachableAddress(address: string, hostUrl: string): string {
  const parts = /^(\[[^\]]+\]|[^:[\]]+):(\d+)$/.exec(address);
  const [, name = "", port = ""] = parts ?? [];
  const bare = name.replace(/^\[|\]$/g, "");
  if (parts === null || !(isLoopback(bare) || ANY_ADDRESS.includes(bare))) return address;
  return `${new URL(hostUrl).hostname}:${port}`;
}
