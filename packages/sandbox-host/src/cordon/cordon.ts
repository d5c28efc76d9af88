import { SandboxError } from "@turnbox/core";
import { untilAborted } from "../async/until-aborted.ts";
import { ADMISSION } from "../record/fleet-records.ts";
import type { Records } from "../record/records.ts";
import { staleEpoch } from "./fence.ts";

export type AdmissionState = "open" | "closed";

/** Whether new sessions are let in, as the fleet said last. Sessions that are there go on either way. */
export interface Cordon {
  readonly state: AdmissionState;
  /** Lets a session in that is about to be made; dispose when it is made or not. Throws `HOST_CORDONED` while closed. */
  enter(): Disposable;
  /**
   * Durable when it answers. Closing also waits for the sessions that were let in before, so that whoever closed it finds
   * all there will be. Throws `EPOCH_STALE`, changing nothing, where a later leader is known.
   */
  set(
    wanted: { readonly state: AdmissionState; readonly epoch: number },
    call: { readonly signal: AbortSignal },
  ): Promise<void>;
}

export async function createCordon({ records }: { readonly records: Records }): Promise<Cordon> {
  let state: AdmissionState = (await records.call("findFact", ADMISSION)) === "closed" ? "closed" : "open";
  const underWay = new Set<Promise<undefined>>();
  return {
    get state() {
      return state;
    },
    enter: () => {
      if (state === "closed") throw new SandboxError("HOST_CORDONED", "the host takes no new sessions");
      const ended = Promise.withResolvers<undefined>();
      underWay.add(ended.promise);
      return {
        [Symbol.dispose]: () => {
          underWay.delete(ended.promise);
          ended.resolve(undefined);
        },
      };
    },
    set: async (wanted, { signal }) => {
      signal.throwIfAborted();
      const highest = await records.call("keepAdmission", { admission: wanted.state, epoch: wanted.epoch });
      if (highest !== wanted.epoch) throw staleEpoch(wanted.epoch, highest);
      state = wanted.state;
      if (state === "closed") await untilAborted(Promise.all(underWay), signal);
    },
  };
}
