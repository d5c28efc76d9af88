import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { ChangeFiles } from "../file/change-files.ts";
import type { SessionFiles } from "../file/session-files.ts";
import type { Health } from "../health/health.ts";
import type { Network } from "../network/network.ts";
import type { Ports } from "../network/port/ports.ts";
import type { UpdateNetworkPolicy } from "../network/update-policy.ts";
import type { ProcessParts } from "../process/process-parts.ts";
import type { Records } from "../record/records.ts";
import type { ContainerLimits, Runtime } from "../runtime/runtime.ts";
import type { Activity } from "../session/activity.ts";
import type { CreateSession } from "../session/create.ts";
import type { DestroySession } from "../session/destroy.ts";
import type { SessionEvents } from "../session/events.ts";
import type { ExtendSession } from "../session/extend.ts";
import type { PauseSession, ResumeSession } from "../session/pause.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import type { RepairSession } from "../session/repair.ts";
import type { Storage } from "../storage/storage.ts";
import type { Templates } from "../template/templates.ts";
import type { ExecuteTool } from "../tool/execute.ts";
import type { ToolCalls } from "../tool/tool-calls.ts";
import type { CompleteTurn } from "../turn/complete.ts";
import type { DeleteSnapshot } from "../turn/delete.ts";
import type { DiffSnapshots } from "../turn/diff/diff-snapshots.ts";
import type { ForkSession } from "../turn/fork.ts";
import type { RestoreSnapshot } from "../turn/restore.ts";
import type { RollbackSession } from "../turn/rollback.ts";
import type { CreateSnapshot } from "../turn/snapshot.ts";

/** Everything the services call, put together in compose.ts. */
export interface Host extends ProcessParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly registry: Registry;
  readonly events: SessionEvents;
  readonly activity: Activity;
  readonly receipts: Receipts;
  readonly templates: Templates;
  readonly health: Health;
  readonly files: SessionFiles;
  readonly changeFiles: ChangeFiles;
  /** Aborts when the host stops. */
  readonly stopping: AbortSignal;
  readonly createSession: CreateSession;
  readonly destroySession: DestroySession;
  readonly pauseSession: PauseSession;
  readonly resumeSession: ResumeSession;
  readonly extendSession: ExtendSession;
  readonly repairSession: RepairSession;
  readonly forkSession: ForkSession;
  readonly executeTool: ExecuteTool;
  readonly toolCalls: ToolCalls;
  readonly completeTurn: CompleteTurn;
  readonly createSnapshot: CreateSnapshot;
  readonly deleteSnapshot: DeleteSnapshot;
  readonly restoreSnapshot: RestoreSnapshot;
  readonly rollbackSession: RollbackSession;
  readonly diffSnapshots: DiffSnapshots;
  readonly network: Network;
  readonly ports: Ports;
  readonly updateNetworkPolicy: UpdateNetworkPolicy;
  readonly maxSessions: number;
  readonly version: string;
  readonly defaults: {
    readonly quotaBytes: number | null;
    readonly limits: ContainerLimits;
    readonly pauseDrainTimeoutMs: number;
    /** What the names of turn snapshots begin with. */
    readonly snapshotPrefix: string;
  };
}
