import { type Clock, SandboxError } from "@turnbox/core";
import type { Log } from "@turnbox/core";
import type { FleetInstance, FleetView, InstanceState } from "../../instance/fleet-view.ts";
import type { Machine, Provisioner, Tags } from "../../instance/provisioner.ts";
import type { InstanceRow, Store } from "../../store/store.ts";
import type { HostConnection, HostReport } from "../host-connection.ts";
import type { PlacementInstance } from "./placement.ts";
import type { Slots } from "./slots.ts";

export interface InstanceRegistryOptions {
  readonly fleetId: string;
  readonly provisioner: Provisioner;
  readonly store: Store;
  readonly slots: Slots;
  /** Makes a line to the host at a url; nothing is sent before the first call on it. */
  readonly connectHost: (url: string) => HostConnection;
  readonly reportTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Log;
}

interface Entry {
  readonly machine: Machine;
  readonly row: InstanceRow;
  readonly connection: HostConnection | undefined;
  /** The last answer of the host at this url; undefined before the first one. */
  readonly report: HostReport | undefined;
  /** Why the last question was not answered. */
  readonly silence: string | undefined;
}

const STATE_OF_MACHINE: Readonly<Record<Machine["state"], InstanceState>> = {
  pending: "provisioning",
  running: "provisioning",
  stopping: "stopped",
  stopped: "stopped",
  terminating: "terminating",
  terminated: "terminating",
};

const NOTHING_KNOWN: HostReport = {
  health: "unhealthy",
  sessionCount: 0,
  maxSessions: 0,
  cpus: 0,
  memoryBytes: 0,
  memoryAvailableBytes: 0,
  poolBytes: 0,
  poolAvailableBytes: 0,
  templates: [],
  problems: [],
};

/** The tags by which a fleet knows its own machines. */
export function fleetTags(fleetId: string): Tags {
  return { "turnbox-fleet": fleetId };
}

/**
 * The instances of the fleet: what their maker says, a line to each host, and what each host said last. It is
 * level-triggered: `sync` and `refresh` look at what is there, whatever was missed before. Only machines with the
 * fleet's own tag are taken in. A booting machine is not ready before its host has answered once.
 */
export class InstanceRegistry implements FleetView, AsyncDisposable {
  readonly fleetId: string;
  readonly #options: InstanceRegistryOptions;
  readonly #entries = new Map<string, Entry>();
  /** Instances that were here once, may hold sandboxes, and have no machine now. */
  #absent: readonly string[] = [];
  #syncing: Promise<void> = Promise.resolve();

  constructor(options: InstanceRegistryOptions) {
    this.#options = options;
    this.fleetId = options.fleetId;
  }

  /** Takes in what the maker of machines says. Runs one after another. */
  async sync(call: { readonly signal: AbortSignal }): Promise<void> {
    const turn = this.#syncing.then(() => this.#sync(call));
    this.#syncing = turn.catch(() => undefined);
    await turn;
  }

  /** `sync`, and a question to every host, all at once. A host that does not answer stays what it was, but gets nothing new. */
  async refresh(call: { readonly signal: AbortSignal }): Promise<void> {
    await this.sync(call);
    await Promise.all([...this.#entries.keys()].map((instanceId) => this.#ask(instanceId, call)));
  }

  /** The line to a host. An instance without a running host cannot be reached, and nothing was sent to it. */
  connection(instanceId: string): HostConnection {
    const entry = this.#entries.get(instanceId);
    if (entry?.connection !== undefined) return entry.connection;
    if (entry === undefined && !this.#absent.includes(instanceId)) {
      throw new SandboxError("INSTANCE_NOT_FOUND", `the fleet has no instance ${instanceId}`);
    }
    const state = entry?.machine.state ?? "not running";
    const problem = entry?.machine.problem === undefined ? "" : `: ${entry.machine.problem}`;
    throw new SandboxError("HOST_UNREACHABLE", `the instance ${instanceId} is ${state}${problem}`, {
      admitted: "no",
      metadata: { instanceId },
    });
  }

  instanceIds(): readonly string[] {
    return [...this.#entries.keys()].sort();
  }

  absentIds(): readonly string[] {
    return this.#absent;
  }

  instances(): readonly FleetInstance[] {
    return this.instanceIds().flatMap((instanceId) => {
      const entry = this.#entries.get(instanceId);
      return entry === undefined ? [] : [describe(entry)];
    });
  }

  /** What placement decides on: reports, and what was promised since. */
  *placementView(): Iterable<PlacementInstance> {
    for (const entry of this.#entries.values()) {
      const { instanceId } = entry.machine;
      const promised = this.#options.slots.promised(instanceId);
      const report = entry.report ?? NOTHING_KNOWN;
      yield {
        instanceId,
        admission: admissionOf(entry),
        health: healthOf(entry),
        labels: entry.row.labels,
        sessions: { used: report.sessionCount + promised.sessions, total: report.maxSessions },
        cpus: { used: promised.cpus, total: report.cpus },
        memoryBytes: {
          used: report.memoryBytes - report.memoryAvailableBytes + promised.memoryBytes,
          total: report.memoryBytes,
        },
        poolBytes: {
          used: report.poolBytes - report.poolAvailableBytes + promised.diskBytes,
          total: report.poolBytes,
        },
        templates: templateNames(report),
      };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#syncing;
    const connections = [...this.#entries.values()].flatMap((entry) => entry.connection ?? []);
    this.#entries.clear();
    await Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()));
  }

  async #sync(call: { readonly signal: AbortSignal }): Promise<void> {
    const { provisioner, store, slots } = this.#options;
    const machines = await provisioner.list({ tags: fleetTags(this.fleetId), states: [] }, call);
    const rows = new Map((await store.listInstances(call)).map((row) => [row.instanceId, row]));
    for (const machine of machines) {
      const row = rows.get(machine.instanceId) ?? (await this.#remember(machine, call));
      await this.#take(machine, row);
    }
    const present = new Set(machines.map((machine) => machine.instanceId));
    for (const [instanceId, entry] of this.#entries) {
      if (present.has(instanceId)) continue;
      this.#entries.delete(instanceId);
      slots.forget(instanceId);
      await entry.connection?.[Symbol.asyncDispose]();
    }
    this.#absent = [...rows.keys()].filter((instanceId) => !present.has(instanceId));
    for (const machine of await provisioner.list({ tags: fleetTags(this.fleetId), states: ["terminated"] }, call)) {
      if (!present.has(machine.instanceId)) await store.deleteInstance(machine.instanceId, call);
    }
  }

  async #remember(machine: Machine, call: { readonly signal: AbortSignal }): Promise<InstanceRow> {
    const row: InstanceRow = {
      instanceId: machine.instanceId,
      admission: "open",
      labels: {},
      createdAtMs: machine.launchedAtMs,
    };
    await this.#options.store.putInstance(row, call);
    return row;
  }

  /** Another url is another host process: its line is new, and so is everything it says. */
  async #take(machine: Machine, row: InstanceRow): Promise<void> {
    const known = this.#entries.get(machine.instanceId);
    if (known !== undefined && known.machine.url === machine.url) {
      this.#entries.set(machine.instanceId, { ...known, machine, row });
      return;
    }
    const connection = machine.url === undefined ? undefined : this.#options.connectHost(machine.url);
    this.#entries.set(machine.instanceId, { machine, row, connection, report: undefined, silence: undefined });
    await known?.connection?.[Symbol.asyncDispose]();
  }

  async #ask(instanceId: string, call: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, logger, reportTimeoutMs, slots } = this.#options;
    const connection = this.#entries.get(instanceId)?.connection;
    if (connection === undefined) return;
    const askedAtMs = clock.monotonicMs();
    const signal = AbortSignal.any([call.signal, AbortSignal.timeout(reportTimeoutMs)]);
    const answer = await connection.report({ signal }).then(
      (report) => ({ report, silence: undefined }),
      (error: unknown) => ({ report: undefined, silence: SandboxError.from(error).message }),
    );
    call.signal.throwIfAborted();
    const entry = this.#entries.get(instanceId);
    if (entry?.connection !== connection) return;
    if (answer.report === undefined) {
      if (entry.silence === undefined) logger.warn({ instanceId, problem: answer.silence }, "a host does not answer");
      this.#entries.set(instanceId, { ...entry, silence: answer.silence });
      return;
    }
    if (entry.silence !== undefined) logger.info({ instanceId }, "a host answers again");
    slots.reported(instanceId, askedAtMs);
    this.#entries.set(instanceId, { ...entry, ...answer });
  }
}

function stateOf(entry: Entry): InstanceState {
  if (entry.machine.state !== "running" || entry.report === undefined) return STATE_OF_MACHINE[entry.machine.state];
  return entry.report.sessionCount === 0 ? "ready" : "active";
}

function admissionOf(entry: Entry): PlacementInstance["admission"] {
  if (entry.row.admission === "cordoned") return "cordoned";
  switch (stateOf(entry)) {
    case "provisioning":
      return "booting";
    case "stopped":
    case "terminating":
      return "stopped";
    case "draining":
      return "draining";
    case "ready":
    case "active":
      return "open";
  }
}

function healthOf(entry: Entry): FleetInstance["health"] {
  return entry.silence === undefined ? (entry.report?.health ?? "unknown") : "unknown";
}

function describe(entry: Entry): FleetInstance {
  const { machine, row, report } = entry;
  const problems = [machine.problem, entry.silence, ...(report?.problems ?? [])].filter(
    (problem) => problem !== undefined,
  );
  return {
    instanceId: machine.instanceId,
    state: stateOf(entry),
    cordoned: row.admission === "cordoned",
    url: machine.url,
    labels: row.labels,
    launchedAtMs: machine.launchedAtMs,
    health: healthOf(entry),
    sessionCount: report?.sessionCount ?? 0,
    maxSessions: report?.maxSessions ?? 0,
    poolAvailableBytes: report?.poolAvailableBytes ?? 0,
    message: problems.join("; "),
  };
}

function templateNames(report: HostReport): ReadonlySet<string> {
  return new Set(report.templates.flatMap(({ name, digest }) => [name, `${name}@${digest}`]));
}
