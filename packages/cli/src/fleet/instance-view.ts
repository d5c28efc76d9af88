import type { Instance } from "@turnbox/client";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable, type TableLook } from "../format/table.ts";
import { toIsoDate } from "../sandbox-view.ts";

/** The documented shape of an instance under `--json`. */
export interface InstanceView {
  readonly instanceId: string;
  readonly state: string;
  /** Why it is being emptied; null if it is not. */
  readonly drainReason: string | null;
  readonly cordoned: boolean;
  readonly health: string;
  readonly url: string | null;
  readonly sessionCount: number;
  /** Null means no limit. */
  readonly maxSessions: number | null;
  readonly poolAvailableBytes: number;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly launchedAt: string | null;
  readonly message: string;
}

export function toInstanceView(instance: Instance): InstanceView {
  const { id, state, drainReason, cordoned, health, url, sandboxCount, maxSandboxes, image, labels, message } =
    instance;
  return {
    instanceId: id,
    state,
    drainReason: drainReason ?? null,
    cordoned,
    health,
    url: url ?? null,
    sessionCount: sandboxCount,
    maxSessions: maxSandboxes ?? null,
    poolAvailableBytes: instance.poolAvailableBytes,
    image,
    labels,
    launchedAt: toIsoDate(instance.launchedAt),
    message,
  };
}

const HEALTH_COLORS = { healthy: "green", degraded: "yellow", unhealthy: "red" } as const;

export function formatInstances(instances: readonly InstanceView[], nowMs: number, look: TableLook = {}): string {
  return formatTable(
    ["INSTANCE", "STATE", "HEALTH", "SANDBOXES", "FREE", "AGE", "IMAGE", "NOTE"],
    instances.map((instance) => [
      instance.instanceId,
      formatState(instance),
      instance.health,
      formatCount(instance),
      formatSize(instance.poolAvailableBytes),
      instance.launchedAt === null ? "" : formatAge(nowMs - Date.parse(instance.launchedAt)),
      instance.image,
      instance.message,
    ]),
    { ...look, lastCell: "cut", colors: HEALTH_COLORS },
  );
}

/** `ready`, `ready cordoned`, `draining (operator)`. */
export function formatState({ state, drainReason, cordoned }: InstanceView): string {
  if (drainReason !== null) return `${state} (${drainReason})`;
  return cordoned ? `${state} cordoned` : state;
}

export const formatCount = ({ sessionCount, maxSessions }: InstanceView): string =>
  maxSessions === null ? String(sessionCount) : `${String(sessionCount)}/${String(maxSessions)}`;
