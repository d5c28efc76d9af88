import { type Call, raceSignal, SandboxError } from "@turnbox/core";
import { ADMISSION } from "../record/fleet-records.ts";
import type { Records } from "../record/records.ts";
import { staleEpoch } from "./fence.ts";

export type AdmissionState = "open" | "closed";

/** Whether new sessions are admitted, by the last command of the fleet. Existing sessions are not affected. */
export interface Cordon {
  readonly state: AdmissionState;
  /** Admits a session that is about to be made; dispose when that has ended in any way. Throws `HOST_CORDONED` while closed. */
  enter(): Disposable;
  /**
   * Durable when it returns. To close also waits for the sessions that were admitted before, so that a list after it is
   * complete. Throws `EPOCH_STALE`, and changes nothing, if a later leader is known.
   */
  set(wanted: { readonly state: AdmissionState; readonly epoch: number }, call: Call): Promise<void>;
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
      if (state === "closed") await raceSignal(Promise.all(underWay), signal);
    },
  };
}
