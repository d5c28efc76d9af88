import { SandboxError } from "@turnbox/core";
import { judgeAnswer, judgeName, type PolicyInForce } from "../../network-policy/policy.ts";
import type { AddressBlock, Link } from "./address-block.ts";
import { Denials } from "./denials.ts";
import type { Pin } from "./ruleset.ts";

/** The most addresses that names have opened for one session at a time. */
const MAX_PINS = 4096;

/** The network of one container, as this service knows it. */
export class Attached {
  readonly container: string;
  readonly slot: number;
  readonly link: Link;
  readonly denials = new Denials();
  /** Null for a network of an earlier service until its policy is set again: its old rules hold till then. */
  policy: PolicyInForce | null;
  readonly #pins = new Map<string, { readonly name: string; readonly untilMs: number }>();

  constructor(
    container: string,
    at: { readonly block: AddressBlock; readonly slot: number; readonly policy: PolicyInForce | null },
  ) {
    this.container = container;
    this.slot = at.slot;
    this.link = at.block.link(at.slot);
    this.policy = at.policy;
  }

  /** Forgets addresses whose time is over. Throws if there is no room for more of them. */
  assertRoomForPins(count: number, nowMs: number): void {
    for (const [address, { untilMs }] of this.#pins) if (untilMs <= nowMs) this.#pins.delete(address);
    if (this.#pins.size + count > MAX_PINS) throw new Error("too many addresses at once");
  }

  /** Notes addresses that a name has opened. */
  addPins(name: string, pins: readonly Pin[], nowMs: number): void {
    for (const { address, seconds } of pins) this.#pins.set(address, { name, untilMs: nowMs + seconds * 1000 });
  }

  /** The addresses that stay open under a policy. */
  pinsUnder(policy: PolicyInForce, nowMs: number): readonly Pin[] {
    return [...this.#pins].flatMap(([address, { name, untilMs }]) => {
      const seconds = Math.floor((untilMs - nowMs) / 1000);
      const open = [judgeName(policy, name), judgeAnswer(policy, address)].every(({ kind }) => kind === "allowed");
      return open && seconds > 0 ? [{ address, seconds }] : [];
    });
  }
}

/** The networks of all containers that this service knows. */
export class AttachedNetworks {
  readonly #byContainer = new Map<string, Attached>();
  /** By the address of the sandbox: the resolver looks it up for every packet. */
  readonly #byAddress = new Map<string, Attached>();
  #lastSlot = 0;

  of(container: string): Attached | undefined {
    return this.#byContainer.get(container);
  }

  ofAddress(address: string): Attached | undefined {
    return this.#byAddress.get(address);
  }

  all(): Iterable<Attached> {
    return this.#byContainer.values();
  }

  add(attached: Attached): void {
    this.#byContainer.set(attached.container, attached);
    this.#byAddress.set(attached.link.address, attached);
  }

  remove(container: string): void {
    const attached = this.#byContainer.get(container);
    this.#byContainer.delete(container);
    if (attached === undefined) return;
    if (this.#byAddress.get(attached.link.address) === attached) this.#byAddress.delete(attached.link.address);
  }

  clear(): void {
    this.#byContainer.clear();
    this.#byAddress.clear();
  }

  /** The first free slot after the last one taken, so that late packets for an ended sandbox reach no other one. */
  takeSlot(block: AddressBlock): number {
    const taken = new Set([...this.#byContainer.values()].map(({ slot }) => slot));
    for (let step = 0; step < block.links; step += 1) {
      const slot = ((this.#lastSlot + step) % block.links) + 1;
      if (taken.has(slot)) continue;
      this.#lastSlot = slot;
      return slot;
    }
    throw new SandboxError("RUNTIME_UNAVAILABLE", `a host has at most ${String(block.links)} sessions with a network`);
  }
}
