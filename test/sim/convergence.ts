import type { DrainPlan, SandboxRow, Store } from "../../packages/orchestrator/src/store/store.ts";
import type { Client } from "./client.ts";
import { type CloudModel, isEnding, type ModelMachine } from "./cloud-model.ts";
import { TENANT } from "./fleet-gate.ts";
import { isBegun, type Safety } from "./safety.ts";
import type { Scenario } from "./scenario.ts";
import { EPOCH_MS } from "./sim-process.ts";
import type { SimWorld } from "./world.ts";

export interface ConvergenceOptions {
  readonly world: SimWorld;
  readonly scenario: Scenario;
  readonly cloud: CloudModel;
  readonly store: Store;
  readonly safety: Safety;
  readonly clients: readonly Client[];
  readonly isOwn: (machine: ModelMachine) => boolean;
}

const CALL = { signal: new AbortController().signal };

/** What is not yet as it should be, now that nothing fails any more; empty where everything is. */
export async function findUnsettled(options: ConvergenceOptions): Promise<readonly string[]> {
  const sandboxes = await options.store.listSandboxes({ tenant: TENANT, after: "", limit: 100_000 }, CALL);
  return [
    ...options.clients.flatMap((client) => client.pending ?? []),
    ...machinesAndRows(options),
    ...sizes(options),
    ...drains(options),
    ...promises(options),
    ...index(options, sandboxes),
  ];
}

const own = ({ cloud, isOwn }: ConvergenceOptions): readonly ModelMachine[] =>
  [...cloud.machines.values()].filter((machine) => isOwn(machine) && machine.state !== "terminated");

/** No machine that nobody wants, no wish without a machine. */
function machinesAndRows(options: ConvergenceOptions): readonly string[] {
  const { safety } = options;
  const machines = own(options);
  const unknown = machines.filter(({ instanceId }) => !safety.rows.has(instanceId));
  const without = [...safety.rows.keys()].filter((id) => !machines.some(({ instanceId }) => instanceId === id));
  const ending = [...safety.rows.values()].filter(({ goal }) => goal === "terminated");
  const ended = machines.filter(isEnding);
  return [
    ...unknown.map(({ instanceId }) => `the machine ${instanceId} is on no record`),
    ...without.map((instanceId) => `the record of ${instanceId} has no machine`),
    ...ending.map(({ instanceId }) => `${instanceId} should be gone`),
    ...ended.map(({ instanceId }) => `${instanceId} is still ending`),
  ];
}

/** Enough instances, enough warm ones, and no more than are good for something. */
function sizes(options: ConvergenceOptions): readonly string[] {
  const { minInstances, maxInstances, warmPoolTarget } = options.scenario.policy;
  const { rows } = options.safety;
  const machines = own(options);
  const serving = machines.filter(({ instanceId, host, state }) => {
    const row = rows.get(instanceId);
    const isWanted = row?.goal === "running" && row.admission === "open" && !isBegun(row);
    return isWanted && host.isUp && state === "running";
  });
  const cordoned = [...rows.values()].filter(({ goal, admission }) => goal === "running" && admission === "cordoned");
  const staying = serving.length + cordoned.length;
  const closed = serving.filter(({ host }) => host.admission !== "open");
  const warm = serving.filter(({ host }) => host.sessions.size === 0);
  const isFull = machines.length >= maxInstances;
  const unsettled = closed.map(({ instanceId }) => `${instanceId} is wanted and takes nothing new`);
  if (machines.length > maxInstances) unsettled.push(`${String(machines.length)} machines are more than the most`);
  if (staying < minInstances && !isFull) unsettled.push(`${String(staying)} are there: too few`);
  if (warm.length < warmPoolTarget && !isFull) unsettled.push(`${String(warm.length)} warm: too few`);
  const spare = Math.min(warm.length - warmPoolTarget, serving.length - minInstances);
  if (spare > 0) unsettled.push(`${String(spare)} idle instances too many`);
  return unsettled;
}

/** A drain has ended, or keeps an instance only for the sandboxes that are left there. */
function drains(options: ConvergenceOptions): readonly string[] {
  return [...options.safety.rows.values()].flatMap(({ drain, instanceId, goal }) => {
    const machine = options.cloud.machines.get(instanceId);
    if (goal === "stopped" && machine?.state !== "stopped") return [`${instanceId} should be stopped`];
    if (machine === undefined || drain === undefined || goal !== "running") return [];
    const why = whyUnended(machine, drain, options);
    return why === undefined ? [] : [`${instanceId} ${why}`];
  });
}

function whyUnended(
  { state, host }: ModelMachine,
  drain: DrainPlan,
  { scenario, world }: ConvergenceOptions,
): string | undefined {
  if (drain.reason === "health") return "is well and still drains";
  if (drain.sessions === "discard") return "was given up and is still there";
  // What it holds is not known while it is stopped, and nobody starts it before somebody needs it.
  const isStopped = state === "stopped";
  if (host.sessions.size === 0)
    return isStopped && drain.reason === "interruption" ? undefined : "is empty and still drains";
  const isOver = EPOCH_MS + world.timeline.nowMs >= drain.deadlineMs;
  return isOver && !isStopped && scenario.stopStart === "supported" ? `still drains (${drain.reason})` : undefined;
}

/** What clients were promised is there. */
function promises({ safety, cloud }: ConvergenceOptions): readonly string[] {
  const there = new Set([...cloud.machines.values()].flatMap(({ host }) => [...host.sessions.keys()]));
  return safety
    .owed()
    .filter((id) => !there.has(id))
    .map((id) => `${id} was promised and is nowhere`);
}

/** The index says of each sandbox where it is, and has no other. */
function index({ cloud, safety }: ConvergenceOptions, sandboxes: readonly SandboxRow[]): readonly string[] {
  const where = new Map<string, string>();
  for (const { instanceId, host } of cloud.machines.values()) {
    for (const sessionId of host.sessions.keys()) where.set(sessionId, instanceId);
  }
  const indexed = new Map(sandboxes.map((row) => [row.sessionId, row]));
  const orphans = [...where.keys()].filter((id) => indexed.get(id)?.phase !== "created");
  const wrong = sandboxes.filter((row) => where.has(row.sessionId) && where.get(row.sessionId) !== row.instanceId);
  // A create that nobody repeats may leave its intention behind; that holds nothing.
  const empty = sandboxes.filter((row) => row.phase === "created" && !where.has(row.sessionId));
  return [
    ...orphans.map(
      (id) => `${id} on ${where.get(id) ?? ""} is not in the index (${indexed.get(id)?.phase ?? "no row"})`,
    ),
    ...wrong.map((row) => `${row.sessionId} is not on ${row.instanceId ?? "any"}`),
    ...empty.map(
      (row) =>
        `${row.sessionId} (${row.phase}) is in the index and ${safety.isLost(row.sessionId) ? "lost" : "not there"}`,
    ),
  ];
}
