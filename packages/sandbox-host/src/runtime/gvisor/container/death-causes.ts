import { identifyProcess, isLiving } from "@turnbox/core";
import { cgroupOf, type DeathCause, type Deaths, type GvisorContext, liveState } from "../context.ts";

/** How many causes are remembered; a caller that asks does so soon after the container was removed. */
const MAX_REMEMBERED = 1024;

export function createDeaths(): Deaths {
  return { seen: new Map(), causes: new Map() };
}

/** Whether a container is dead, by its processes; two reads of /proc for one that was seen before. */
export async function isDead(context: GvisorContext, id: string): Promise<boolean> {
  const { seen } = context.deaths;
  if (seen.get(id)?.every(isLiving) === true) return false;
  seen.delete(id);
  const state = await liveState(context, id);
  if (state === undefined) return true;
  const identities = [state.sandboxPid, state.goferPid].map(identifyProcess);
  if (!identities.every((identity) => identity !== undefined)) return true;
  seen.set(id, identities);
  return false;
}

/** Called before a container is removed: returns whether it had died by itself, and then keeps the cause. */
export async function noteDeath(context: GvisorContext, id: string): Promise<"died" | "alive"> {
  const { seen, causes } = context.deaths;
  seen.delete(id);
  // A sentry that the kernel kills takes a moment to go.
  const cause = await causeOfDeath(context, id);
  if (cause !== "oom" && (await liveState(context, id)) !== undefined) return "alive";
  causes.set(id, cause);
  const [oldest] = causes.keys();
  if (causes.size > MAX_REMEMBERED && oldest !== undefined) causes.delete(oldest);
  return "died";
}

/** Why a container that is gone is gone. */
export async function causeOfDeath(context: GvisorContext, id: string): Promise<DeathCause> {
  const known = context.deaths.causes.get(id);
  if (known !== undefined) return known;
  return (await (await cgroupOf(context, id)).oomKills()) > 0 ? "oom" : "sandbox_lost";
}
