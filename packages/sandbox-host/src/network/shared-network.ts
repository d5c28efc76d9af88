import { replaceMembers } from "@turnbox/core";
import { SharedLooks } from "../share/shared-looks.ts";
import type { Network } from "./network.ts";

/** The network, with reads shared among callers that ask at the same time: each read is a command that runs. */
export function withSharedLooks(network: Network): Network {
  const denials = new SharedLooks((container, call) => network.denials(container, call));
  const traffic = new SharedLooks((container, call) => network.traffic(container, call));
  return replaceMembers(network, {
    denials: (container, call) => denials.ask(container, call),
    traffic: (container, call) => traffic.ask(container, call),
  });
}
