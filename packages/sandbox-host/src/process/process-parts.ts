import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
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
import { createProcesses, type Processes } from "./processes.ts";
import { createStoredJournals } from "./stored-journal.ts";
import { createTerminals, type Terminals } from "./terminal.ts";
import { startProcessWatch } from "./watch.ts";
import { createWriteInput, type WriteInput } from "./write-input.ts";

/** All that has to do with launched processes. */
export interface ProcessParts {
  readonly processes: Processes;
  readonly terminals: Terminals;
  readonly launchProcess: LaunchProcess;
  readonly killProcess: KillProcess;
  readonly writeInput: WriteInput;
}

export interface RunningProcessParts {
  readonly parts: ProcessParts;
  /** Stops looking after processes, and nothing else: what a crash does. */
  abandon(): Promise<void>;
  /** Ends terminals, which end with the service, and stops looking after the rest. */
  close(): Promise<void>;
}

/** Takes up the processes of an earlier service and looks after all there are. The sessions are recovered by then. */
export async function startProcessParts(
  deps: {
    /** Where processes have their files. */
    readonly directory: string;
    readonly storage: Storage;
    readonly workers: FileWorkers;
    /** What the output of one session's processes may take, whoever watches. */
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
    /** The program that connects to a port inside, and ends at once where nobody listens. */
    readonly relay: (port: number) => readonly [string, ...string[]];
    readonly clock: Clock;
    readonly log: Logger;
    readonly highWaterBytes?: number;
  },
  call: { readonly signal: AbortSignal },
): Promise<RunningProcessParts> {
  const { storage, workers, journalQuotaBytes: quotaBytes } = deps;
  const processes = createProcesses({ ...deps, journals: createStoredJournals({ storage, workers, quotaBytes }) });
  await processes.load(call);
  deps.activity.countAsUse((session) => processes.list(session).some(isWork));
  const terminals = createTerminals({ ...deps, processes });
  const watch = startProcessWatch({ ...deps, processes });
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
 * Whether a process keeps its session from being idle. One that runs does, until it ends; a server only waits for others,
 * and it is their connections that count.
 */
function isWork({ row }: LaunchedProcess): boolean {
  return row.end === null && row.started === "yes" && row.port === 0;
}
