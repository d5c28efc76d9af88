import { access } from "node:fs/promises";
import { cgroupOf, cgroupPath, type GvisorContext, liveState, sandboxOf } from "../context.ts";
import { resolvConfPath } from "../layout.ts";
import type { Freezer } from "./freezer.ts";
import { createRest, type Rest } from "./rest.ts";

const COUNT_DEADLINE_MS = 10_000;

/**
 * Lets containers rest in which there is no process but the runtime's own, and paused ones. One that has a network is kept
 * awake: who connects to it is answered, also where nothing listens.
 */
export function createContainerRest(
  context: GvisorContext,
  {
    freezer,
    afterMs,
    countProcesses,
  }: {
    readonly freezer: Freezer;
    readonly afterMs: number;
    readonly countProcesses: (id: string, signal: AbortSignal) => Promise<number>;
  },
): Rest {
  return createRest({
    clock: context.clock,
    afterMs,
    inspect: async (id) => {
      const state = await liveState(context, id);
      if (state === undefined) return { kind: "gone" };
      if (await isThere(resolvConfPath(context.layout, id))) return { kind: "busy" };
      const processes = await countProcesses(id, AbortSignal.timeout(COUNT_DEADLINE_MS));
      return processes === 0 || state.status === "paused" ? { kind: "still", processes } : { kind: "busy" };
    },
    prepare: async (id) => ({
      path: cgroupPath(context, await sandboxOf(context, id)),
      pids: await (await cgroupOf(context, id)).pids(),
    }),
    freeze: ({ path, pids }) => {
      freezer.freeze(path, pids);
    },
    thaw: async (id) => {
      freezer.thaw(cgroupPath(context, await sandboxOf(context, id)));
    },
  });
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
