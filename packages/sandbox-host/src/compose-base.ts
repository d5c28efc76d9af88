import { rm } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { raceTime, systemClock } from "@turnbox/core";
import type { Assembly } from "./assembly.ts";
import { type Backends, composeBackends, logBackends } from "./compose-backends.ts";
import { logMembarrier } from "./health/log-membarrier.ts";
import type { HostOptions } from "./compose-options.ts";
import { openRecords, type Records } from "./record/records.ts";
import { recordCleanStop } from "./recovery/clean-stop.ts";
import { readBoot } from "./recovery/reboot.ts";
import { freezeSessions } from "./recovery/shutdown.ts";
import { hostCapacity } from "./session-bounds.ts";
import { createActivity } from "./session/activity.ts";
import { PASS_ON } from "./session/crash-point.ts";
import { createSessionEvents } from "./session/events.ts";
import { createRegistry, type Registry } from "./session/registry.ts";
import type { HeadRef } from "./storage/storage.ts";
import { HostCommandRunner } from "./system/command/host-command-runner.ts";
import { OutputStore } from "./tool/output/store.ts";

/** How long a stop waits for operations that were asked to stop. */
export const SETTLE_MS = 2_000;

/** What a stop has to know at its end, when the sandboxes are left frozen. */
export interface StopState {
  /** Whether all operations have ended, so that nothing writes any more. */
  operations: "ended" | "go_on";
  bootId: string | null;
}

type Call = { readonly signal: AbortSignal };

/** Opens records and backends, which all else stands on. */
export async function composeBase(options: HostOptions, assembly: Assembly, call: Call) {
  const { config, dataDirectory, log, clock = systemClock, crashPoint = PASS_ON } = options;
  const stop: StopState = { operations: "go_on", bootId: null };
  const { path, helper } = options;
  const runner = assembly.use("command runner", new HostCommandRunner({ path, ...(helper && { helper }) }));
  // First of all: a host that may not use the records changes nothing of the home.
  const recordsPath = join(dataDirectory, "host.db");
  const records = assembly.use("records", await openRecords(recordsPath));
  const events = createSessionEvents({ clock });
  const maxSessions = hostCapacity(config, totalmem());
  const registry = createRegistry({ maxSessions, maxEnvironmentBytes: config.environmentTotal, events });
  const backends = await (options.backends ?? ((its) => composeBackends(options, its)))(runner);
  ownBackends(assembly, backends, { ...options, clock, records, registry, stop });
  const stagingPath = join(dataDirectory, "staging");
  const outputsPath = join(dataDirectory, "tool-output");
  for (const path of [stagingPath, outputsPath]) await rm(path, { recursive: true, force: true });
  const limits = { sessionBytes: config.toolJournalSession, hostBytes: config.toolJournalTotal };
  const outputs = assembly.use("outputs of tool calls", new OutputStore({ directory: outputsPath, clock, limits }));
  const version = await openBackends(backends, records, call);
  logBackends(log, { storage: backends.storage.kind, runtime: backends.runtime, version });
  if (backends.runtime.kind === "gvisor") {
    logMembarrier({ runner, log }, call).catch((err: unknown) => {
      log.warn({ err }, "whether runsc starts without membarrier is not known");
    });
  }
  const boot = await readBoot(records, options.bootId);
  stop.bootId = boot.bootId;
  const activity = createActivity({ clock });
  const shared = { config, dataDirectory, log, clock, crashPoint, runner, records, events, registry, activity };
  const { storage, runtime, network, workers } = backends;
  return { ...shared, storage, runtime, network, workers, recordsPath, stagingPath, outputs, boot, maxSessions, stop };
}

export type BaseParts = Awaited<ReturnType<typeof composeBase>>;

/** Sandboxes are left frozen when the runtime is closed, and before the records are. */
function ownBackends(
  assembly: Assembly,
  { storage, runtime, network, workers }: Backends,
  deps: Required<Pick<HostOptions, "clock" | "log">> & {
    readonly records: Records;
    readonly registry: Registry;
    readonly stop: StopState;
  },
): void {
  const { clock, log, records, registry, stop } = deps;
  assembly.defer("running sandboxes", async (ending) => {
    if (ending !== "stopped") return;
    const frozen = await freezeSessions({ registry, runtime, log });
    if (stop.operations === "ended" && frozen === "all_frozen" && stop.bootId !== null)
      await recordCleanStop({ records, storage, log, bootId: stop.bootId });
  });
  assembly.defer("runtime", async (ending) => {
    if (ending === "abandoned") return;
    await raceTime(runtime.close({ signal: AbortSignal.timeout(SETTLE_MS) }), { clock, atMostMs: SETTLE_MS });
  });
  assembly.use("network", network);
  assembly.use("file workers", workers);
}

/** Opens runtime and storage at once, and returns when both attempts have ended. */
async function openBackends({ runtime, storage }: Backends, records: Records, call: Call): Promise<string> {
  const onRemounted = (heads: readonly HeadRef[]): Promise<void> => records.call("noteLostHeads", heads);
  const opening = [runtime.open(call), storage.open({ ...call, onRemounted })] as const;
  await Promise.allSettled(opening);
  const [{ version }] = await Promise.all(opening);
  return version;
}
