import { Resolver } from "node:dns/promises";
import { hasErrno } from "@turnbox/core";
import type { LookUp } from "./resolver.ts";

const TIMEOUT_MS = 3_000;
const TRIES = 2;

/** Looks names up at these resolvers; null means those that the machine is configured with. */
export function createLookUp(nameservers: string | null): LookUp {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (nameservers !== null) resolver.setServers(nameservers.split(","));
  return async (name) => {
    try {
      return await resolver.resolve4(name, { ttl: true });
    } catch (thrown) {
      if (hasErrno(thrown, "ENOTFOUND") || hasErrno(thrown, "ENODATA")) return [];
      throw thrown;
    }
  };
}
