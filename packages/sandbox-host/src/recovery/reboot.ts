import { readFile } from "node:fs/promises";
import { mapConcurrent } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";
import { takeCleanStop } from "./clean-stop.ts";
import { loseFiles } from "./storage-watch.ts";

const BOOT_ID = "boot_id";
/** How many sessions are handled at once. */
const LANES = 16;

export interface Boot {
  /** Which boot of the machine this is. */
  readonly bootId: string;
  /** The boot in which the service stopped cleanly before; null if it did not. */
  readonly cleanStop: string | null;
}

/**
 * If the machine has booted since the last start, and the service had not stopped cleanly before, the last writes
 * may not have reached the disk: every session begins a new generation, and tool calls that finished since its last
 * snapshot are in doubt. The new boot is recorded last, so a start that is cut off begins again.
 */
export async function surviveReboot(
  deps: {
    readonly registry: Registry;
    readonly records: Records;
    readonly runtime: Runtime;
    readonly containers: Containers;
    readonly log: Logger;
  },
  { bootId, cleanStop }: Boot,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const { registry, records, log } = deps;
  const known = await records.call("findFact", BOOT_ID);
  if (known === bootId) return;
  if (known !== null && known !== cleanStop) {
    const sessions = registry.all().filter(({ row }) => row.phase.kind !== "destroying");
    log.warn({ sessions: sessions.length }, "machine booted without a clean stop of the service");
    await mapConcurrent(sessions, LANES, (session) => loseFiles(deps, session, call));
  }
  await records.call("keepFact", { name: BOOT_ID, value: bootId });
}

/** Reads which boot this is, from the kernel unless it is given. Takes the mark of a clean stop, so call it once. */
export async function readBoot(records: Records, given: string | undefined): Promise<Boot> {
  const bootId = given ?? (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
  return { bootId, cleanStop: await takeCleanStop(records) };
}
