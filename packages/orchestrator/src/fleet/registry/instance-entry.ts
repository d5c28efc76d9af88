import type { FleetInstance, InstanceState } from "../fleet-view.ts";
import type { Machine, MachineState } from "../../provisioner/provisioner.ts";
import type { InstanceRow } from "../../store/store.ts";
import type { HostConnection, HostReport } from "../../control/host-connection.ts";
import { begunDrain, isOpen } from "./drain-plan.ts";
import type { InstanceView } from "./instance-view.ts";
import type { PlacementInstance } from "../placement/placement.ts";
import type { Promised } from "../placement/slots.ts";

/** All that is known about one instance: what the fleet wants, what its maker says, what its host says. */
export interface Entry {
  readonly row: InstanceRow;
  /** As its maker last described it; undefined if no list has had it yet. */
  readonly machine: Machine | undefined;
  /** How many lists in a row have not had it. */
  readonly missedLists: number;
  readonly connection: HostConnection | undefined;
  /** The last answer of the host at this url; undefined before the first one. */
  readonly report: HostReport | undefined;
  /** Why the last question was not answered. */
  readonly silence: string | undefined;
  readonly goodInRow: number;
  readonly badInRow: number;
  /** When it last had sandboxes or came up. */
  readonly idleSinceMs: number;
  /** What people should know beyond that; empty if there is nothing. */
  readonly notice: string;
}

/** Of a connection that was not used yet: answers on another one do not count. */
export const NO_ANSWERS = { report: undefined, silence: undefined, goodInRow: 0, badInRow: 0 } as const;

const NOTHING_KNOWN: HostReport = {
  health: "unhealthy",
  sessionCount: 0,
  maxSessions: 0,
  cpus: 0,
  memoryBytes: 0,
  memoryAvailableBytes: 0,
  poolBytes: 0,
  poolAvailableBytes: 0,
  admission: "open",
  templates: [],
  problems: [],
};

/** What is assumed about a machine with the fleet's mark that is not on record: that it may hold sandboxes. */
export function unwrittenRow(machine: Machine): InstanceRow {
  return {
    instanceId: machine.instanceId,
    admission: "open",
    labels: {},
    createdAtMs: machine.launchedAtMs,
    image: machine.image,
    drain: undefined,
    goal: machine.state === "terminating" || machine.state === "terminated" ? "terminated" : "running",
    hasAnswered: true,
    version: 0,
  };
}

export function stateOf(entry: Entry): InstanceState {
  const { row, machine } = entry;
  const machineState = STATE_OF_MACHINE[machine?.state ?? "running"];
  if (row.goal === "terminated" || machineState === "terminating") return "terminating";
  if (row.goal === "stopped" || machineState === "stopped") return "stopped";
  if (begunDrain(row) !== undefined) return "draining";
  if (machine === undefined) return row.hasAnswered ? "stopped" : "provisioning";
  return machine.state === "running" ? stateOfHost(entry) : "provisioning";
}

function stateOfHost({ report }: Entry): InstanceState {
  if (report === undefined) return "provisioning";
  return report.sessionCount === 0 ? "ready" : "active";
}

const STATE_OF_MACHINE: Readonly<Record<MachineState, "up" | "stopped" | "terminating">> = {
  pending: "up",
  running: "up",
  stopping: "stopped",
  stopped: "stopped",
  terminating: "terminating",
  terminated: "terminating",
};

export function healthOf({ silence, report }: Entry): FleetInstance["health"] {
  return silence === undefined ? (report?.health ?? "unknown") : "unknown";
}

const ADMISSION: Readonly<Record<InstanceState, PlacementInstance["admission"]>> = {
  provisioning: "booting",
  ready: "open",
  active: "open",
  draining: "draining",
  stopped: "stopped",
  terminating: "stopped",
};

export function toPlacement(entry: Entry, promised: Promised, templates: ReadonlySet<string>): PlacementInstance {
  const { row, report = NOTHING_KNOWN } = entry;
  const admission = ADMISSION[stateOf(entry)];
  const closed = !isOpen(row) || report.admission === "closed";
  return {
    instanceId: row.instanceId,
    admission: admission === "open" && closed ? "cordoned" : admission,
    health: healthOf(entry),
    sessions: { used: report.sessionCount + promised.sessions, total: report.maxSessions },
    cpus: { used: promised.cpus, total: report.cpus },
    memoryBytes: {
      used: report.memoryBytes - report.memoryAvailableBytes + promised.memoryBytes,
      total: report.memoryBytes,
    },
    poolBytes: { used: report.poolBytes - report.poolAvailableBytes + promised.diskBytes, total: report.poolBytes },
    templates,
  };
}

export function toFleetInstance(entry: Entry): FleetInstance {
  const { machine, row, report = NOTHING_KNOWN } = entry;
  const words = [entry.notice, machine?.problem, entry.silence, ...report.problems];
  return {
    instanceId: row.instanceId,
    state: stateOf(entry),
    drainReason: begunDrain(row)?.reason,
    cordoned: row.admission === "cordoned",
    url: machine?.url,
    labels: row.labels,
    image: row.image,
    launchedAtMs: machine?.launchedAtMs ?? row.createdAtMs,
    health: healthOf(entry),
    sessionCount: report.sessionCount,
    maxSessions: report.maxSessions,
    poolAvailableBytes: report.poolAvailableBytes,
    message: words.filter((word) => word !== undefined && word !== "").join("; "),
  };
}

/** One that has answered before and says nothing now may hold a sandbox, so it counts as if it did. */
export function toView(entry: Entry, promised: Promised, terminateTries: number): InstanceView {
  const { machine, row, report } = entry;
  const reported = report?.sessionCount ?? (row.hasAnswered ? 1 : 0);
  return {
    row,
    machine: entry.missedLists > 0 ? undefined : machine,
    missedLists: entry.missedLists,
    isAnswering: report !== undefined,
    health: healthOf(entry),
    goodInRow: entry.goodInRow,
    badInRow: entry.badInRow,
    sessions: reported + promised.sessions,
    idleSinceMs: entry.idleSinceMs,
    terminateTries,
  };
}
