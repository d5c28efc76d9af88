import type { Clock } from "@turnbox/core";
import { measure } from "@turnbox/rpc/metrics";
import { CATALOG } from "../../tool/catalog.ts";
import type { ExecuteTool } from "../../tool/execute.ts";
import type { LedgerAnswer } from "../../tool/ledger.ts";
import type { ServiceParts } from "../routes.ts";
import type { HostMetrics } from "./host-metrics.ts";

type Operation =
  | "create"
  | "destroy"
  | "pause"
  | "resume"
  | "repair"
  | "turn"
  | "snapshot"
  | "rollback"
  | "fork"
  | "restore"
  | "diff";

/** The use cases that are counted and timed. */
export type MeteredParts = Pick<
  ServiceParts,
  | "clock"
  | "createSession"
  | "destroyOnRequest"
  | "pauseSession"
  | "resumeSession"
  | "repairSession"
  | "completeTurn"
  | "createSnapshot"
  | "rollbackSession"
  | "forkSession"
  | "restoreSnapshot"
  | "diffSnapshots"
  | "executeTool"
>;

/** The host with its tool calls and operations counted and timed; everything else is the host's own. */
export function meterHost<Host extends MeteredParts>(host: Host, metrics: HostMetrics): Host {
  const { clock } = host;
  const metered =
    <Args extends readonly unknown[], Result>(operation: Operation, work: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> =>
      measure(
        clock,
        () => work(...args),
        ({ outcome, seconds }) => {
          metrics.add("operations", { operation, outcome });
          metrics.observe("operationSeconds", { operation }, seconds);
        },
      );
  return {
    ...host,
    createSession: metered("create", host.createSession),
    destroyOnRequest: metered("destroy", host.destroyOnRequest),
    pauseSession: metered("pause", host.pauseSession),
    resumeSession: metered("resume", host.resumeSession),
    repairSession: metered("repair", host.repairSession),
    completeTurn: metered("turn", host.completeTurn),
    createSnapshot: metered("snapshot", host.createSnapshot),
    rollbackSession: metered("rollback", host.rollbackSession),
    forkSession: metered("fork", host.forkSession),
    restoreSnapshot: metered("restore", host.restoreSnapshot),
    diffSnapshots: metered("diff", host.diffSnapshots),
    executeTool: meterTools(host.executeTool, metrics, clock),
  };
}

function meterTools(execute: ExecuteTool, metrics: HostMetrics, clock: Clock): ExecuteTool {
  return async (session, call) => {
    const tool = labelOf(call.toolName);
    let answer: LedgerAnswer | undefined;
    return await measure(
      clock,
      async () => (answer = await execute(session, call)),
      ({ outcome, seconds }) => {
        metrics.add("toolCalls", { tool, outcome: answer === undefined ? outcome : outcomeOf(answer) });
        if (answer?.from === "run") metrics.observe("toolSeconds", { tool }, seconds);
      },
    );
  };
}

const LABELS: ReadonlyMap<string, string> = new Map(
  CATALOG.flatMap(({ name, aliases }) => [name, ...aliases].map((known) => [known, name] as const)),
);

/** The catalog's own name: callers may send any word, and each would be a series of its own. */
const labelOf = (toolName: string): string => LABELS.get(toolName) ?? "unknown";

function outcomeOf({ result, from }: LedgerAnswer): string {
  if (from === "store") return "replayed";
  if (result.exitReason !== "exited") return result.exitReason;
  return result.isError ? "error" : "ok";
}
