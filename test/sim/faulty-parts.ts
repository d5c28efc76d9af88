import { SandboxError } from "@turnbox/core";
import type { Fleet } from "../../packages/orchestrator/src/fleet/fleet.ts";
import type { Action, Phase, Phases } from "../../packages/orchestrator/src/fleet/loop/phase.ts";
import { PHASES } from "../../packages/orchestrator/src/fleet/loop/phase-table.ts";
import { type Parts, REAL_PARTS } from "./parts.ts";

const withPhases = (phases: Partial<Phases>): Parts => ({ ...REAL_PARTS, phases: { ...PHASES, ...phases } });

const spoiled = (spoil: Parts["spoil"]): Parts => ({ ...REAL_PARTS, spoil });

/** Gives a place back when a destroy is asked for, whatever becomes of it. */
function releaseHastily({ slots, registry }: Fleet): void {
  const released = new Map<string, number>();
  const promised = slots.promised.bind(slots);
  const connection = registry.connection.bind(registry);
  slots.promised = (instanceId) => {
    const honest = promised(instanceId);
    return { ...honest, sessions: honest.sessions - (released.get(instanceId) ?? 0) };
  };
  registry.connection = (instanceId) => {
    const line = connection(instanceId);
    return {
      ...line,
      destroySandbox: (request, call) => {
        released.set(instanceId, (released.get(instanceId) ?? 0) + 1);
        return line.destroySandbox(request, call);
      },
    };
  };
}

/** Takes a report for the whole truth, also about what was asked for after it. */
function forgetPromises({ slots }: Fleet): void {
  const reported = slots.reported.bind(slots);
  slots.reported = (instanceId) => {
    slots.forget(instanceId);
    reported(instanceId, Number.POSITIVE_INFINITY);
  };
}

/** Takes a machine that boots for one that is ready. */
function placeOnBooting({ registry }: Fleet): void {
  const view = registry.placementView.bind(registry);
  registry.placementView = () =>
    [...view()].map((one) => (one.admission === "booting" ? { ...one, admission: "open", health: "healthy" } : one));
}

const terminateAll = (isMeant: (world: Parameters<Phase>[0], at: number) => boolean): Phase => {
  return (world) =>
    world.instances.flatMap(({ row }, at): readonly Action[] =>
      row.goal === "running" && isMeant(world, at)
        ? [{ kind: "terminate", instanceId: row.instanceId, proof: "discard" }]
        : [],
    );
};

/** An orchestrator with one fault each, by what is wrong with it. */
export const FAULTY_PARTS: Readonly<Record<string, Parts>> = {
  "a destroy gives the place back before the host has said so (D27)": spoiled(releaseHastily),
  "a booting machine is taken for ready (D28)": spoiled(placeOnBooting),
  "every create that waits launches a machine (D28)": withPhases({
    scaleUp: (world) =>
      Array.from({ length: world.waitingCreates }, () => ({
        kind: "launch",
        image: world.defaultImage,
        why: "a create waits",
      })),
  }),
  "a report overwrites what was promised since (D29)": spoiled(forgetPromises),
  "a host that says it is ill is taken for well (D30)": {
    ...REAL_PARTS,
    connection: (line) => ({
      ...line,
      report: async (call) => ({ ...(await line.report(call)), health: "healthy" }),
    }),
  },
  "machines that boot are not counted (D31)": withPhases({
    scaleUp: (world) =>
      PHASES.scaleUp({ ...world, instances: world.instances.filter(({ isAnswering }) => isAnswering) }),
  }),
  "the least number of instances is not kept (D32)": withPhases({
    scaleUp: (world) => PHASES.scaleUp({ ...world, policy: { ...world.policy, minInstances: 0 } }),
  }),
  "machines of others are taken in (D33)": {
    ...REAL_PARTS,
    provisioner: (line) => ({
      ...line,
      list: async (query, call) =>
        (await line.list({ ...query, tags: {} }, call)).map((machine) => ({ ...machine, tags: query.tags })),
    }),
  },
  "a drained machine is ended without asking what it holds": withPhases({
    terminate: terminateAll(({ instances }, at) => instances[at]?.row.drain !== undefined),
  }),
  "silence is taken for death": withPhases({
    terminate: terminateAll(({ instances }, at) => {
      const seen = instances[at];
      return seen?.row.hasAnswered === true && seen.badInRow >= 2;
    }),
  }),
  "a create of unknown outcome is repeated on another host": {
    ...REAL_PARTS,
    connection: (line) => ({
      ...line,
      createSandbox: (request, call) =>
        line.createSandbox(request, call).catch((error: unknown) => {
          const { reason, message } = SandboxError.from(error);
          throw new SandboxError(reason, message, { admitted: "no" });
        }),
    }),
  },
};
