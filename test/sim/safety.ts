import type { HostReport } from "../../packages/orchestrator/src/control/host-connection.ts";
import type { PlacementInstance } from "../../packages/orchestrator/src/fleet/placement/placement.ts";
import { begunDrain } from "../../packages/orchestrator/src/fleet/registry/drain-plan.ts";
import type { InstanceRow } from "../../packages/orchestrator/src/store/store.ts";
import { type CloudWatch, isEnding, type ModelMachine } from "./cloud-model.ts";
import type { LineWatch } from "./host-line.ts";
import type { HostModel, HostWatch, ModelSession } from "./host-model.ts";
import type { Scenario } from "./scenario.ts";
import { EPOCH_MS, type SimProcess } from "./sim-process.ts";
import type { StoreWatch } from "./store-line.ts";
import type { SimWorld } from "./world.ts";

interface Heard {
  readonly report: HostReport;
  readonly arrivedAtMs: number;
  /** When the newest report of this host that the orchestrator has was made. */
  readonly madeAtMs: number;
  /** Since when all reports have said that nothing new should go there; undefined where the last did not. */
  readonly unfitSinceMs: number | undefined;
}

export interface SafetyOptions {
  readonly world: SimWorld;
  readonly scenario: Scenario;
  readonly machines: () => Iterable<ModelMachine>;
  readonly isOwn: (host: HostModel) => boolean;
  /** How full an orchestrator takes an instance to be at this moment. */
  readonly viewOf: (process: SimProcess, instanceId: string) => PlacementInstance | undefined;
  /** Creates that clients wait for. */
  readonly waitingCreates: () => number;
}

/** As far back as creates may be a reason to launch something. */
const RECENT_MS = 600_000;
/** How long a sandbox may be there twice that nobody was told of. */
const TAKE_BACK_MS = 45_000;
/** Clocks of orchestrators differ by less than this. */
const SKEW_MS = 1000;

/** How long a create that was refused elsewhere may go on with what it knew when it began. */
const PLACING_SLACK_MS = 20_000;

/**
 * What must never happen, whatever fails. Each change of the models is judged when it takes place, against the models
 * themselves and not against what an orchestrator believes.
 */
export class Safety implements HostWatch, LineWatch, CloudWatch, StoreWatch {
  readonly rows = new Map<string, InstanceRow>();
  readonly #options: SafetyOptions;
  readonly #holders = new Map<string, Set<HostModel>>();
  readonly #byClient = new Map<string, Set<string>>();
  readonly #answers = new Map<string, string>();
  readonly #acknowledged = new Set<string>();
  readonly #destroyAsked = new Set<string>();
  readonly #lost = new Set<string>();
  readonly #heard = new Map<string, Heard>();
  readonly #inFlight = new Map<string, Set<string>>();
  readonly #placedBefore = new Set<string>();
  readonly #beginningsMs: number[] = [];
  #highestEpoch = 0;
  #violation: string | undefined;

  constructor(options: SafetyOptions) {
    this.#options = options;
  }

  get violation(): string | undefined {
    return this.#violation;
  }

  fail(message: string): void {
    this.#options.world.trace.add(`VIOLATION ${message}`);
    this.#violation ??= message;
  }

  /** A client has got a sandbox under its key. */
  acknowledged(client: string, sandboxId: string): void {
    const first = this.#answers.get(client);
    if (first !== undefined && first !== sandboxId) this.fail(`${client} got ${first} and then ${sandboxId}`);
    this.#answers.set(client, sandboxId);
    this.#acknowledged.add(sessionOf(sandboxId));
  }

  destroyAsked(sandboxId: string): void {
    this.#destroyAsked.add(sessionOf(sandboxId));
  }

  /** Sandboxes that clients were promised and have not asked to end, and whose machine was not taken from under them. */
  owed(): readonly string[] {
    return [...this.#acknowledged].filter((id) => !this.#destroyAsked.has(id) && !this.#lost.has(id));
  }

  /** Whether its machine was taken away with it. */
  isLost(sandboxId: string): boolean {
    return this.#lost.has(sessionOf(sandboxId));
  }

  isOwed(sandboxId: string): boolean {
    const id = sessionOf(sandboxId);
    return this.#acknowledged.has(id) && !this.#destroyAsked.has(id) && !this.#lost.has(id);
  }

  // Hosts

  sessionBegan(host: HostModel, { sessionId, client }: ModelSession): void {
    this.#trace(`${host.instanceId} begins ${sessionId} of ${client}`);
    this.#beginningsMs.push(this.#nowMs());
    const holders = this.#holders.get(sessionId) ?? new Set();
    this.#holders.set(sessionId, holders.add(host));
    this.#judgeTwins(holders, () => `${sessionId} is on ${[...holders].map((one) => one.instanceId).join(" and ")}`);
    const sessions = this.#byClient.get(client) ?? new Set();
    this.#byClient.set(client, sessions.add(sessionId));
    this.#judgeTwins(sessions, () => `${client} has the twins ${[...sessions].join(" and ")}`);
  }

  sessionEnded(host: HostModel, { sessionId, client }: ModelSession, why: "destroyed" | "undone" | "lost"): void {
    this.#trace(`${host.instanceId}: ${sessionId} is ${why}`);
    this.#holders.get(sessionId)?.delete(host);
    this.#byClient.get(client)?.delete(sessionId);
    if (why === "lost") this.#lost.add(sessionId);
    if (why !== "lost" && this.#acknowledged.has(sessionId) && !this.#destroyAsked.has(sessionId)) {
      this.fail(`${sessionId} is ${why} on ${host.instanceId} and nobody asked for it`);
    }
  }

  commandObeyed(host: HostModel, epoch: number, what: string): void {
    this.#trace(`${host.instanceId} obeys epoch ${String(epoch)}: ${what}`);
    if (epoch > this.#highestEpoch) this.fail(`${host.instanceId} was told the epoch ${String(epoch)} of no lease`);
    if (!this.#options.isOwn(host)) this.fail(`the foreign ${host.instanceId} was told: ${what}`);
  }

  // Lines to hosts

  createSent(process: SimProcess, host: HostModel, sessionId: string): void {
    this.#trace(`${process.name} asks ${host.instanceId} for ${sessionId}`);
    const place = placeOf(process, host.instanceId);
    const inFlight = this.#inFlight.get(place) ?? new Set();
    this.#inFlight.set(place, inFlight.add(sessionId));
    if (!this.#options.isOwn(host)) this.fail(`a create went to the foreign ${host.instanceId}`);
  }

  createAnswered(process: SimProcess, host: HostModel, sessionId: string): void {
    this.#inFlight.get(placeOf(process, host.instanceId))?.delete(sessionId);
  }

  destroySent(process: SimProcess, host: HostModel, sessionId: string): void {
    this.#trace(`${process.name} destroys ${sessionId} on ${host.instanceId}`);
    if (!this.#options.isOwn(host)) this.fail(`a destroy went to the foreign ${host.instanceId}`);
  }

  reportArrived(process: SimProcess, host: HostModel, report: HostReport, madeAtMs: number): void {
    if (!this.#options.isOwn(host)) this.fail(`the foreign ${host.instanceId} was asked how it is`);
    const before = this.#heard.get(placeOf(process, host.instanceId));
    const nowMs = this.#nowMs();
    const isFit = report.health !== "unhealthy" && report.admission === "open";
    this.#heard.set(placeOf(process, host.instanceId), {
      report,
      arrivedAtMs: nowMs,
      madeAtMs: Math.max(madeAtMs, before?.madeAtMs ?? 0),
      unfitSinceMs: isFit ? undefined : (before?.unfitSinceMs ?? nowMs),
    });
  }

  // The store

  placing(process: SimProcess, sessionId: string, instanceId: string): void {
    const isAgain = this.#placedBefore.has(`${sessionId} ${instanceId}`);
    this.#placedBefore.add(`${sessionId} ${instanceId}`);
    const view = this.#options.viewOf(process, instanceId);
    if (view === undefined || isAgain) return;
    const heard = this.#heard.get(placeOf(process, instanceId));
    if (heard === undefined) {
      this.fail(`${process.name} places ${sessionId} on ${instanceId}, whose host has never answered it`);
      return;
    }
    this.#judgeFitness(process, heard, instanceId);
    this.#judgeCount(process, view, { sessionId, madeAtMs: heard.madeAtMs });
  }

  leased(epoch: number): void {
    if (epoch < this.#highestEpoch) this.fail(`the lease went back to epoch ${String(epoch)}`);
    if (epoch > this.#highestEpoch) this.#trace(`a lease of epoch ${String(epoch)}`);
    this.#highestEpoch = epoch;
  }

  instancePut(row: InstanceRow, epoch: number | undefined): void {
    this.#judgeEpoch(epoch, `the row of ${row.instanceId}`);
    const drain =
      row.drain === undefined
        ? ""
        : ` drain ${row.drain.reason}/${row.drain.sessions}${isBegun(row) ? "" : " (waits)"}`;
    this.#trace(`row ${row.instanceId}: ${row.goal} ${row.admission}${drain} answered ${row.hasAnswered}`);
    this.rows.set(row.instanceId, row);
  }

  instanceDeleted(instanceId: string, epoch: number | undefined): void {
    this.#judgeEpoch(epoch, `the end of the row of ${instanceId}`);
    this.#trace(`row ${instanceId}: deleted`);
    this.rows.delete(instanceId);
  }

  // The cloud

  launched(machine: ModelMachine): void {
    const { policy } = this.#options.scenario;
    const own = [...this.#options.machines()].filter((one) => this.#isKept(one));
    if (own.length > policy.maxInstances) this.fail(`${String(own.length)} machines are more than the most`);
    this.#judgeNeed(machine, own);
  }

  started(machine: ModelMachine): void {
    if (!this.#options.isOwn(machine.host)) this.fail(`the foreign ${machine.instanceId} was started`);
  }

  stopAccepted({ instanceId, host }: ModelMachine, by: string): void {
    if (!this.#options.isOwn(host)) this.fail(`${by} stops the foreign ${instanceId}`);
    const drain = this.rows.get(instanceId)?.drain;
    const running = [...host.sessions.values()].filter(({ state }) => state === "active" || state === "creating");
    if (running.length > 0 && (drain === undefined || this.#wallMs() + SKEW_MS < drain.deadlineMs)) {
      this.fail(`${by} stops ${instanceId} on which ${String(running.length)} sandboxes run`);
    }
  }

  terminateAccepted({ instanceId, host }: ModelMachine, by: string): void {
    if (!this.#options.isOwn(host)) this.fail(`${by} terminates the foreign ${instanceId}`);
    const drain = this.rows.get(instanceId)?.drain;
    const isGivenUp = drain?.sessions === "discard" && this.#wallMs() + SKEW_MS >= drain.deadlineMs;
    const held = [...host.sessions.values()].filter(({ state }) => state !== "destroying");
    for (const { sessionId } of held) this.#lost.add(sessionId);
    if (held.length > 0 && !isGivenUp) {
      this.fail(`${by} terminates ${instanceId}, which holds ${held.map(({ sessionId }) => sessionId).join(", ")}`);
    }
  }

  gone({ instanceId }: ModelMachine): void {
    this.#trace(`${instanceId} is gone`);
  }

  /** Where two replicas made the same at once, the one that was too late takes its own back before it tells anybody. */
  #judgeTwins(holders: ReadonlySet<unknown>, message: () => string): void {
    if (holders.size < 2) return;
    this.#options.world.timeline.after(TAKE_BACK_MS, () => {
      if (holders.size > 1) this.fail(message());
    });
  }

  #judgeFitness(process: SimProcess, { unfitSinceMs, report }: Heard, instanceId: string): void {
    if (unfitSinceMs === undefined || this.#nowMs() - unfitSinceMs < PLACING_SLACK_MS) return;
    const why = `${report.health} and ${report.admission}`;
    this.fail(`${process.name} places on ${instanceId}, which said long ago that it is ${why}`);
  }

  /** An orchestrator counts at least what it can know of: what a report told, and what it asked for itself. */
  #judgeCount(process: SimProcess, view: PlacementInstance, at: { sessionId: string; madeAtMs: number }): void {
    const known = new Set(this.#inFlight.get(placeOf(process, view.instanceId)));
    known.add(at.sessionId);
    for (const machine of this.#options.machines()) {
      if (machine.instanceId !== view.instanceId) continue;
      for (const session of machine.host.sessions.values()) {
        if (session.from === process.name || session.beganAtMs < at.madeAtMs) known.add(session.sessionId);
      }
    }
    const { used } = view.sessions;
    if (used < known.size) {
      this.fail(`${process.name} counts ${String(used)} on ${view.instanceId}, which has ${String(known.size)}`);
    }
  }

  /** A launch is for something: too few, too few warm, creates that wait, or the creates of the last minutes. */
  #judgeNeed({ instanceId }: ModelMachine, own: readonly ModelMachine[]): void {
    const { scenario, waitingCreates } = this.#options;
    const { minInstances, warmPoolTarget, maxConcurrentProvisions } = scenario.policy;
    const coming = own.filter((machine) => this.#isComing(machine)).length;
    if (coming > maxConcurrentProvisions) this.fail(`${String(coming)} machines boot at once`);
    const isListBad = scenario.faults.includes("bad_lists") || scenario.faults.includes("bad_cloud");
    const sinceMs = this.#nowMs() - RECENT_MS;
    const recent = this.#beginningsMs.filter((ms) => ms >= sinceMs).length;
    const living = own.reduce((sum, { host }) => sum + host.sessions.size, 0);
    const isUsed = waitingCreates() + recent + living > 0;
    const forCreates = isUsed ? 1 + Math.ceil((recent + living) / scenario.maxSessions) : 0;
    if (coming > Math.max(minInstances, warmPoolTarget, forCreates) && !isListBad) {
      this.fail(`${instanceId} is launched while ${String(coming - 1)} are coming, which are enough`);
    }
  }

  #isComing({ instanceId, host }: ModelMachine): boolean {
    const row = this.rows.get(instanceId);
    return !host.isUp && row?.goal === "running" && row.drain === undefined && !row.hasAnswered;
  }

  #judgeEpoch(epoch: number | undefined, what: string): void {
    if (epoch !== undefined && epoch < this.#highestEpoch) {
      this.fail(`${what} was written under the stale epoch ${String(epoch)}`);
    }
  }

  #isKept(machine: ModelMachine): boolean {
    const isWanted = this.rows.get(machine.instanceId)?.goal !== "terminated";
    return this.#options.isOwn(machine.host) && !isEnding(machine) && isWanted;
  }

  #trace(line: string): void {
    this.#options.world.trace.add(line);
  }

  #nowMs(): number {
    return this.#options.world.timeline.nowMs;
  }

  #wallMs(): number {
    return EPOCH_MS + this.#nowMs();
  }
}

/** An instance of an old image waits for its turn to be drained. */
export const isBegun = ({ drain }: Pick<InstanceRow, "drain">): boolean => begunDrain({ drain }) !== undefined;

const placeOf = (process: SimProcess, instanceId: string): string => `${process.name} ${instanceId}`;

/** The session's id, which is the last part of a sandbox's. */
const sessionOf = (sandboxId: string): string => sandboxId.slice(sandboxId.lastIndexOf(":") + 1);
