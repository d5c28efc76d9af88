import type { Clock } from "@turnbox/core";
import type { Machine, MachineState } from "../provisioner.ts";
import type { Seen } from "./machine-of.ts";

/** The way of a machine through one life; a start begins another one, with a later time of launch. */
const ORDER: readonly MachineState[] = ["pending", "running", "stopping", "stopped", "terminating", "terminated"];
const stepOf = (state: MachineState): number => ORDER.indexOf(state);
const isFinal = (state: MachineState): boolean => stepOf(state) >= stepOf("terminating");

interface Entry {
  readonly ec2Id: string;
  readonly machine: Machine;
  /** When its state last changed. */
  readonly changedAtMs: number;
  /** When EC2 last showed it, or said that it was made. */
  readonly seenAtMs: number;
  /** Whether its present life began by an order of ours: what is said about the one before is old. */
  readonly life: "launched" | "started";
}

/**
 * What is known about machines beyond EC2's last answer, which may be older than what EC2 did before it. A machine never
 * goes back in its life: not after an order of ours was accepted, and not because an answer is stale. One that was made
 * and is not shown yet is there.
 */
export class Ec2Cache {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #graceMs: number;
  readonly #entries = new Map<string, Entry>();
  /** Instances whose end was asked for while EC2 showed none, and when. */
  readonly #endedUnseen = new Map<string, number>();

  constructor(options: { readonly clock: Pick<Clock, "monotonicMs">; readonly graceMs: number }) {
    this.#clock = options.clock;
    this.#graceMs = options.graceMs;
  }

  /** EC2's own id of a machine that is known and has not ended. */
  ec2IdOf(instanceId: string): string | undefined {
    const entry = this.#entries.get(instanceId);
    return entry === undefined || entry.machine.state === "terminated" ? undefined : entry.ec2Id;
  }

  /** Whether EC2 may not know the machine yet although it made it. */
  isFresh(instanceId: string): boolean {
    const entry = this.#entries.get(instanceId);
    return entry !== undefined && this.#clock.monotonicMs() - entry.seenAtMs < this.#graceMs;
  }

  /** Takes in what EC2 shows about a machine and returns what is true. */
  see(seen: Seen): Machine {
    const { instanceId } = seen.machine;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#entries.get(instanceId);
    const shown = this.#isEndedUnseen(instanceId) ? ended(seen.machine) : seen.machine;
    if (known !== undefined && this.#isStale(known, { ...seen, machine: shown }, nowMs)) {
      this.#entries.set(instanceId, { ...known, seenAtMs: nowMs });
      return known.machine;
    }
    this.#entries.set(instanceId, {
      ec2Id: seen.ec2Id,
      machine: shown,
      changedAtMs: known?.machine.state === shown.state ? known.changedAtMs : nowMs,
      seenAtMs: nowMs,
      life: known?.life ?? "launched",
    });
    return shown;
  }

  /** Whether EC2 shows a machine as alive whose end was accepted. */
  isRevived(seen: Seen): boolean {
    const known = this.#entries.get(seen.machine.instanceId)?.machine.state;
    return known !== undefined && isFinal(known) && !isFinal(seen.machine.state);
  }

  /** What is there although EC2's answer lacks it. What has been missing for longer than the grace time is forgotten. */
  unseen(shown: ReadonlySet<string>): readonly Machine[] {
    const nowMs = this.#clock.monotonicMs();
    const machines: Machine[] = [];
    for (const [instanceId, { machine, seenAtMs }] of this.#entries) {
      if (shown.has(instanceId)) continue;
      if (nowMs - seenAtMs < this.#graceMs) machines.push(machine);
      else this.#entries.delete(instanceId);
    }
    return machines;
  }

  /** As `unseen`, for one machine. */
  unseenOne(instanceId: string): Machine | undefined {
    return this.isFresh(instanceId) ? this.#entries.get(instanceId)?.machine : undefined;
  }

  /** An order of ours was accepted. */
  ordered(instanceId: string, state: "stopping" | "pending" | "terminating"): Machine | undefined {
    const entry = this.#entries.get(instanceId);
    if (entry === undefined) return undefined;
    const machine = isFinal(entry.machine.state) ? entry.machine : { ...entry.machine, state, url: undefined };
    const life = state === "pending" ? "started" : "launched";
    this.#entries.set(instanceId, { ...entry, machine, life, changedAtMs: this.#clock.monotonicMs() });
    return machine;
  }

  /** The end of a machine that EC2 does not show: should it turn up, it is on its way out. */
  endedUnseen(instanceId: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, atMs] of this.#endedUnseen) if (nowMs - atMs >= this.#graceMs) this.#endedUnseen.delete(id);
    this.#endedUnseen.set(instanceId, nowMs);
    const entry = this.#entries.get(instanceId);
    if (entry !== undefined) this.#entries.set(instanceId, { ...entry, machine: ended(entry.machine) });
  }

  #isEndedUnseen(instanceId: string): boolean {
    const atMs = this.#endedUnseen.get(instanceId);
    return atMs !== undefined && this.#clock.monotonicMs() - atMs < this.#graceMs;
  }

  #isStale(known: Entry, seen: Seen, nowMs: number): boolean {
    const [before, after] = [known.machine, seen.machine];
    if (isFinal(before.state)) return stepOf(after.state) < stepOf(before.state);
    if (seen.ec2Id !== known.ec2Id || after.launchedAtMs > before.launchedAtMs) return false;
    if (after.launchedAtMs < before.launchedAtMs) return true;
    if (nowMs - known.changedAtMs >= this.#graceMs) return false;
    const isOfLifeBefore = known.life === "started" && (after.state === "stopping" || after.state === "stopped");
    return isOfLifeBefore || stepOf(after.state) < stepOf(before.state);
  }
}

function ended(machine: Machine): Machine {
  return isFinal(machine.state) ? machine : { ...machine, state: "terminating", url: undefined };
}
