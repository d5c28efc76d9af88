import { SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";

/**
 * Refuses commands of orchestrators that do not lead the fleet any more: the highest epoch of a command is kept, over restarts,
 * and commands of a lower one are refused.
 */
export interface Fence {
  /** Returns when the epoch is on record. Throws `EPOCH_STALE` if a higher one is. */
  pass(epoch: number): Promise<void>;
}

export async function createFence({ records }: { readonly records: Records }): Promise<Fence> {
  let highest = await records.call("raiseEpoch", 0);
  return {
    pass: async (epoch) => {
      if (epoch > highest) highest = Math.max(highest, await records.call("raiseEpoch", epoch));
      if (epoch < highest) throw staleEpoch(epoch, highest);
    },
  };
}

export function staleEpoch(epoch: number, highest: number): SandboxError {
  return new SandboxError("EPOCH_STALE", `the command has epoch ${epoch}, the fleet is at ${highest}`, {
    metadata: { epoch: String(epoch), highest: String(highest) },
  });
}
