import type { CreateSandboxRequest } from "../../control/sandbox-control.ts";
import type { CreateQueue } from "./create-queue.ts";
import { type FleetMeter, NO_METER } from "../fleet-meter.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import { type PlacementRules, findPlacement } from "../placement/placement.ts";
import type { Demand, SlotClaim, Slots } from "../placement/slots.ts";
import type { TemplateSync } from "../template/template-sync.ts";

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
  /** Absent if no host gets templates later than its import. */
  readonly templates?: Pick<TemplateSync, "isComing">;
  readonly meter?: FleetMeter;
}

export interface WantedSlot {
  readonly request: CreateSandboxRequest;
  readonly patienceMs: number;
}

/** What a sandbox will take of its instance, as far as the request says. */
export const demandOf = (request: CreateSandboxRequest): Demand => ({
  cpus: request.resources.cpus ?? 0,
  memoryBytes: request.resources.memoryBytes ?? 0,
  diskBytes: request.quotaBytes ?? 0,
});

/** Takes slots for sandboxes. Creates that came before are served first. */
export class SlotTaker {
  readonly #options: TakeSlotOptions;
  readonly #meter: FleetMeter;

  constructor(options: TakeSlotOptions) {
    this.#options = options;
    this.#meter = options.meter ?? NO_METER;
  }

  /** Takes a slot that is free at this moment, or none. */
  async takeNow(request: CreateSandboxRequest): Promise<TakenSlot | undefined> {
    return await this.#meter.placement(() => {
      this.#options.queue.pump();
      return Promise.resolve(this.#find(request).taken);
    });
  }

  /** Takes a slot, or waits for one. */
  async take({ request, patienceMs }: WantedSlot, call: { readonly signal: AbortSignal }): Promise<TakenSlot> {
    const { queue } = this.#options;
    return await this.#meter.placement(async () => {
      queue.pump();
      const found = this.#find(request);
      if (found.taken !== undefined) return found.taken;
      const take = (): TakenSlot | undefined => this.#find(request).taken;
      const waiter = { take, leftMs: patienceMs, message: found.refusal, isExpected: this.#isTemplateComing(request) };
      return await queue.wait(waiter, call);
    });
  }

  #find(
    request: CreateSandboxRequest,
  ): { readonly taken: TakenSlot } | { readonly taken?: never; readonly refusal: string } {
    const { registry, slots, rules, templates } = this.#options;
    const demand = demandOf(request);
    const { template } = request;
    const isComing = (instanceId: string): boolean => templates?.isComing(instanceId, template) === true;
    const placement = findPlacement({ ...demand, template, isComing }, registry.placementView(), rules);
    if (placement.kind === "refused") return { refusal: placement.message };
    const { candidates } = placement;
    return { taken: { claim: slots.claim(candidates[0], demand), candidates } };
  }

  #isTemplateComing({ template }: CreateSandboxRequest): boolean {
    const { registry, templates } = this.#options;
    if (template === "" || templates === undefined) return false;
    return registry.connectedIds().some((instanceId) => templates.isComing(instanceId, template));
  }
}
