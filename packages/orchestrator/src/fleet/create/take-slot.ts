import type { CreateSandboxRequest } from "../../control/sandbox-control.ts";
import type { CreateQueue } from "./create-queue.ts";
import { type FleetMeter, NO_METER } from "../fleet-meter.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import { type PlacementRules, findPlacement } from "../placement/placement.ts";
import type { Demand, SlotClaim, Slots } from "../placement/slots.ts";

/** A slot on the first of the candidates; the others are worth trying after it. */
export interface TakenSlot {
  readonly claim: SlotClaim;
  readonly candidates: readonly [string, ...string[]];
}

export interface TakeSlotOptions {
  readonly registry: InstanceRegistry;
  readonly slots: Slots;
  readonly rules: PlacementRules;
  readonly queue: CreateQueue;
  readonly meter?: FleetMeter;
}

export type TakeSlot = (
  wanted: { readonly request: CreateSandboxRequest; readonly patienceMs: number },
  call: { readonly signal: AbortSignal },
) => Promise<TakenSlot>;

/** What a sandbox will take of its instance, as far as the request says. */
export const demandOf = (request: CreateSandboxRequest): Demand => ({
  cpus: request.resources.cpus ?? 0,
  memoryBytes: request.resources.memoryBytes ?? 0,
  diskBytes: request.quotaBytes ?? 0,
});

/** Takes a slot for a sandbox, or waits for one. Those that came before are served first. */
export function createTakeSlot({ registry, slots, rules, queue, meter = NO_METER }: TakeSlotOptions): TakeSlot {
  const takeNow = (request: CreateSandboxRequest): TakenSlot | { readonly refused: string } => {
    const wanted = { ...demandOf(request), template: request.template };
    const placement = findPlacement(wanted, registry.placementView(), rules);
    if (placement.kind === "refused") return { refused: placement.message };
    return { claim: slots.claim(placement.candidates[0], demandOf(request)), candidates: placement.candidates };
  };
  const takeOrWait: TakeSlot = async ({ request, patienceMs }, call) => {
    queue.pump();
    const taken = takeNow(request);
    if ("claim" in taken) return taken;
    const take = (): TakenSlot | undefined => {
      const now = takeNow(request);
      return "claim" in now ? now : undefined;
    };
    return await queue.wait({ take, leftMs: patienceMs, message: taken.refused }, call);
  };
  return (wanted, call) => meter.placement(() => takeOrWait(wanted, call));
}
