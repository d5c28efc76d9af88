import { readdir, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { KeyedMutex } from "@turnbox/core";
import { removeContainer } from "./container/boot.ts";
import { type GvisorContext, sandboxOf } from "./context.ts";
import { removeUnusedSpares } from "./prewarm/spare-sandbox.ts";
import { idOfStateFile, isBooted, readStateFile } from "./container/state-file.ts";

const PROBE_PREFIX = "probe";
const PROBE_CHARS = 26;

/** What a probe's container is called; no session's has this length. */
export function probeId(randomToken: (length: number) => string): string {
  return `${PROBE_PREFIX}${randomToken(PROBE_CHARS - PROBE_PREFIX.length)}`;
}

/** The root of a probe's container, beside all others. */
export function probeRoot({ layout }: GvisorContext, id: string): string {
  return `${layout.containersDirectory}.${id}`;
}

/** Ids of all containers that there is anything of. */
export async function listContainers({ layout }: GvisorContext): Promise<readonly string[]> {
  const list = async (directory: string): Promise<readonly string[]> => await readdir(directory).catch(() => []);
  const [states, bundles, spares] = await Promise.all(
    [layout.runscRoot, layout.containersDirectory, layout.sparesDirectory].map(list),
  );
  const ids = [...(states ?? []).map(idOfStateFile), ...(bundles ?? [])].filter((id) => id !== undefined);
  return [...new Set(ids)].filter((id) => spares?.includes(id) !== true).toSorted();
}

/**
 * Takes away what a service that died has left unfinished: containers whose boot was cut off, which nothing has run in,
 * and probes with their roots. A boot or a probe of this instance holds its lock, so it is not mistaken for one.
 */
export async function removeLeftovers(context: GvisorContext, lock: KeyedMutex, signal: AbortSignal): Promise<void> {
  const { containersDirectory } = context.layout;
  const prefix = `${basename(containersDirectory)}.`;
  const beside = await readdir(dirname(containersDirectory)).catch(() => []);
  const probes = beside.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const all = new Set([...(await listContainers(context)), ...probes.filter(isProbe)]);
  for (const id of all) {
    await lock.run(
      id,
      async () => {
        if (!isProbe(id) && !(await isHalfMade(context, id))) return;
        await removeContainer(context, id, signal);
        if (isProbe(id)) await rm(probeRoot(context, id), { recursive: true, force: true });
      },
      signal,
    );
  }
}

/** Takes away sandboxes that stood by for an earlier service and came to no container. */
export async function removeLeftSpares(context: GvisorContext, signal: AbortSignal): Promise<void> {
  const used = await Promise.all((await listContainers(context)).map((id) => sandboxOf(context, id)));
  await removeUnusedSpares(context, new Set(used), signal);
}

function isProbe(id: string): boolean {
  return id.startsWith(PROBE_PREFIX) && id.length === PROBE_CHARS;
}

async function isHalfMade(context: GvisorContext, id: string): Promise<boolean> {
  const state = readStateFile(context.layout.runscRoot, id, await sandboxOf(context, id));
  return state === undefined || !isBooted(state);
}
