import { replaceMembers } from "@turnbox/core";
import type { Network } from "../network/network.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** A runtime whose containers take their networks with them: what ends a container, from anywhere, ends its network. */
export function createNetworkedRuntime(runtime: Runtime, network: Network): Runtime {
  return replaceMembers(runtime, {
    open: async (call) => {
      const opened = await runtime.open(call);
      await network.open(await runtime.list(call), call);
      return opened;
    },
    stop: async (id, call) => {
      await runtime.stop(id, call);
      await network.detach(id, call);
    },
  });
}
