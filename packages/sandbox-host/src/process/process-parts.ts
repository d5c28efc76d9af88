import type { Clock, Log } from "@turnbox/core";
import type { Containers } from "../container/container.ts";
import type { FileWorkers } from "../file/workers.ts";
import type { Ports } from "../port-access/ports.ts";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Activity } from "../session/activity.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import type { Storage } from "../storage/storage.ts";
import { createKillProcess, type KillProcess } from "./kill.ts";
import { createLaunchProcess, type LaunchProcess } from "./launch.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { Processes } from "./processes.ts";
import { StoredJournals } from "./stored-journal.ts";
import { takeUpProcesses } from "./take-up.ts";
import { Terminals } from "./terminals.ts";
import { ProcessWatch } from "./watch.ts";
import { createWriteInput, type WriteInput } from "./write-input.ts";

/** The use cases of launched processes. */
export interface ProcessParts {
  readonly processes: Processes;
  readonly terminals: Terminals;
  readonly launchProcess: LaunchProcess;
  readonly killProcess: KillProcess;
  readonly writeInput: WriteInput;
}

export interface RunningProcessParts {
  readonly parts: ProcessParts;
  /** Stops the watch of processes, and nothing else: what a crash does. */
  abandon(): Promise<void>;
  /** Ends terminals, which end with the service, and stops the watch of the others. */
  close(): Promise<void>;
}

/** Takes up the processes of an earlier service and watches all of them. The sessions must be recovered by then. */
export async function startProcessParts(
  deps: {
    /** The directory of the files of processes. */
    readonly directory: string;
    readonly storage: Storage;
    readonly workers: FileWorkers;
    /** What the output of one session's processes may take, also while no service runs. */
    readonly journalQuotaBytes: number;
    /** How many processes of one session run at once. */
    readonly maxRunning: number;
    readonly records: Records;
    readonly receipts: Receipts;
    readonly registry: Registry;
    readonly events: SessionEvents;
    readonly runtime: Runtime;
    readonly containers: Containers;
    readonly activity: Activity;
    readonly ports: Pick<Ports, "expose">;
    /** The program that connects to a port inside, and ends at once if it is refused. */
    readonly relay: (port: number) => readonly [string, ...string[]];
    readonly clock: Clock;
    readonly log: Log;
    readonly highWaterBytes?: number;
  },
  call: { readonly signal: AbortSignal },
): Promise<RunningProcessParts> {
  const { storage, workers, journalQuotaBytes: quotaBytes } = deps;
  const processes = new Processes({ ...deps, journals: new StoredJournals({ storage, workers, quotaBytes }) });
  await takeUpProcesses({ ...deps, processes }, call);
  deps.activity.countAsUse((session) => processes.list(session).some(isWork));
  const terminals = new Terminals({ ...deps, processes });
  const watch = new ProcessWatch({ ...deps, processes });
  const abandon = async (): Promise<void> => {
    await watch[Symbol.asyncDispose]();
  };
  return {
    parts: {
      processes,
      terminals,
      launchProcess: createLaunchProcess({ ...deps, processes, terminals }),
      killProcess: createKillProcess({ ...deps, processes }),
      writeInput: createWriteInput({ processes }),
    },
    abandon,
    close: async () => {
      await terminals.close();
      await abandon();
    },
  };
}

/**
 * Whether a process keeps its session from being idle. One that runs does, until it ends. A server does not: connections to
 * it count instead.
 */
function isWork({ row }: LaunchedProcess): boolean {
  return row.end === null && row.started === "yes" && row.port === 0;
}
