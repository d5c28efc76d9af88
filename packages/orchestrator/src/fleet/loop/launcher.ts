import { hasReason, SandboxError } from "@turnbox/core";
import type { InstanceRow } from "../../store/store.ts";
import { fleetTags } from "../registry/fleet-tags.ts";
import type { ExecutorOptions, FencedWork } from "./executor.ts";
import type { Lead } from "./leadership.ts";
import type { Action } from "./phase.ts";

export interface LauncherOptions extends ExecutorOptions {
  readonly isFree: (instanceId: string) => boolean;
  readonly inBackground: (instanceId: string, lead: Lead, work: (call: FencedWork) => Promise<void>) => void;
}

/** How often a launch whose answer was lost is asked for, under the same id. */
const TRIES = 3;
const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 120_000;

/**
 * Launches machines under ids that are on record beforehand: one whose answer was lost is found again by its id, and
 * counts as booting meanwhile. After a launch that was refused, the next waits a while, longer each time.
 */
export function createLauncher(options: LauncherOptions) {
  const { registry, store, provisioner, clock, logger } = options;
  let refusals = 0;
  let pausedUntilMs = 0;

  const refused = (): void => {
    pausedUntilMs = clock.monotonicMs() + Math.min(FIRST_PAUSE_MS * 2 ** refusals, LONGEST_PAUSE_MS);
    refusals += 1;
  };
  const ask = async (row: InstanceRow, call: FencedWork): Promise<void> => {
    const tags = fleetTags(registry.fleetId);
    const image = row.image === "" ? {} : { image: row.image };
    for (let left = TRIES; ; left -= 1) {
      try {
        await provisioner.launch({ instanceId: row.instanceId, tags, ...image }, call);
        return;
      } catch (error) {
        if (left <= 1 || SandboxError.from(error).admitted !== "unknown" || call.signal.aborted) throw error;
      }
    }
  };

  return {
    launch: async ({ image, why }: Action & { kind: "launch" }, lead: Lead): Promise<void> => {
      if (clock.monotonicMs() < pausedUntilMs) return;
      const call = { signal: lead.signal, epoch: lead.epoch };
      const instanceId = options.newInstanceId(new Set(registry.allIds()));
      if (!options.isFree(instanceId)) return;
      const row: InstanceRow = {
        instanceId,
        admission: "open",
        labels: {},
        createdAtMs: clock.nowMs(),
        image,
        drain: undefined,
        goal: "running",
        everAnswered: "no",
        version: 0,
      };
      if ((await store.putInstance(row, call)) === "changed") return;
      registry.adoptRow({ ...row, version: 1 });
      logger.info({ instanceId, why }, "launches an instance");
      options.inBackground(instanceId, lead, async (work) => {
        try {
          await ask(row, work);
          refusals = 0;
          options.onDone?.();
        } catch (error) {
          refused();
          // What may have been made stays on record: it shows up, or is ended when its time is over.
          if (SandboxError.from(error).admitted === "no" && !hasReason(error, "CANCELLED", "DEADLINE_EXCEEDED")) {
            await store.deleteInstance(instanceId, call);
            await registry.drop(instanceId);
          }
          throw error;
        }
      });
    },
  };
}
