import { cgroupOf, cgroupPath, type GvisorContext, liveState, sandboxOf } from "../context.ts";
import type { CgroupFreezer } from "./cgroup-freezer.ts";
import { IdleFreezer } from "./idle-freezer.ts";

const COUNT_DEADLINE_MS = 10_000;

/**
 * Freezes containers in which there is no process but the runtime's own, and paused ones. One with a network is no exception:
 * nothing inside is there to be connected to, and connections that the service makes are processes inside.
 */
export function createIdleFreezer(
  context: GvisorContext,
  {
    freezer,
    afterMs,
    countProcesses,
  }: {
    readonly freezer: CgroupFreezer;
    readonly afterMs: number;
    readonly countProcesses: (id: string, signal: AbortSignal) => Promise<number>;
  },
): IdleFreezer {
  return new IdleFreezer({
    clock: context.clock,
    afterMs,
    inspect: async (id) => {
      const state = await liveState(context, id);
      if (state === undefined) return { kind: "gone" };
      const processes = await countProcesses(id, AbortSignal.timeout(COUNT_DEADLINE_MS));
      return processes === 0 || state.status === "paused" ? { kind: "idle", processes } : { kind: "busy" };
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
