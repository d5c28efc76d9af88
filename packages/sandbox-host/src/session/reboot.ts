import { readFile } from "node:fs/promises";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Containers } from "./container.ts";
import { inParallel } from "./in-parallel.ts";
import type { Registry } from "./registry.ts";
import { loseFiles } from "./storage-watch.ts";

const BOOT_ID = "boot_id";
/** How many sessions are looked after at once. */
const LANES = 16;

/**
 * Where the machine has booted since the last start, what was written just before may not have reached the disk: every
 * session begins a new generation, and tool calls that finished since its last snapshot are in doubt. The new boot is
 * recorded last, so a start that is cut off begins again. Which boot it is, the kernel says where nothing is given.
 */
export async function surviveReboot(
  deps: {
    readonly registry: Registry;
    readonly records: Records;
    readonly runtime: Runtime;
    readonly containers: Containers;
    readonly log: Logger;
  },
  given: string | undefined,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const { registry, records, log } = deps;
  const bootId = given ?? (await readBootId());
  const known = await records.call("findFact", BOOT_ID);
  if (known === bootId) return;
  if (known !== null) {
    const sessions = registry.all().filter(({ row }) => row.phase.kind !== "destroying");
    log.warn({ sessions: sessions.length }, "the machine has booted since the last start");
    await inParallel(sessions, LANES, (session) => loseFiles(deps, session, call));
  }
  await records.call("keepFact", { name: BOOT_ID, value: bootId });
}

/** Another one after each boot of the machine. */
async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
