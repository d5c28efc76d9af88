import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, createChildCommandRunner, type Log, SandboxError, systemClock } from "@turnbox/core";
import { type HostConfig, poolSizeBytes } from "./config.ts";
import { createHealth } from "./health/health.ts";
import { openRecords } from "./record/records.ts";
import type { Host } from "./rpc/host.ts";
import { createGvisorRuntime } from "./runtime/gvisor/gvisor-runtime.ts";
import { createNoneRuntime } from "./runtime/none/none-runtime.ts";
import type { Runtime } from "./runtime/runtime.ts";
import { createActivity } from "./session/activity.ts";
import { atMost } from "./session/at-most.ts";
import { createContainers } from "./session/container.ts";
import { PASS_ON, type Reach } from "./session/crash-point.ts";
import { createCreateSession } from "./session/create.ts";
import { createDestroySession } from "./session/destroy.ts";
import { createSessionEvents } from "./session/events.ts";
import { createExpiry } from "./session/expire.ts";
import { createExtendSession } from "./session/extend.ts";
import { createHusks } from "./session/husk.ts";
import { createIntents } from "./session/intent.ts";
import { startKeeper } from "./session/keeper.ts";
import { createMaker } from "./session/make.ts";
import { createPauseSession, createResumeSession } from "./session/pause.ts";
import { createReaper } from "./session/reaper.ts";
import { createReceipts } from "./session/receipts.ts";
import { recoverSessions } from "./session/recover.ts";
import { createRegistry } from "./session/registry.ts";
import { createRepairSession } from "./session/repair.ts";
import { freezeSessions } from "./session/shutdown.ts";
import { replaceLostContainers } from "./session/storage-watch.ts";
import { createLocalDiskStorage } from "./storage/local-disk/local-disk-storage.ts";
import type { Storage } from "./storage/storage.ts";
import { createZfsStorage } from "./storage/zfs/zfs-storage.ts";
import { MAX_TEMPLATE_ENTRIES } from "./template/archive.ts";
import { fillMini, MINI, type MiniSources } from "./template/mini.ts";
import { createTemplates } from "./template/templates.ts";
import { createRunBash } from "./tool/bash.ts";
import { createExecuteTool } from "./tool/execute.ts";
import { createLedger } from "./tool/ledger.ts";
import { createCompleteTurn } from "./turn/complete.ts";
import { createDeleteSnapshot } from "./turn/delete.ts";
import { createDiffSnapshots } from "./turn/diff/diff-snapshots.ts";
import { createDropSnapshot } from "./turn/drop.ts";
import { createForkSession } from "./turn/fork.ts";
import { createRestoreSnapshot } from "./turn/restore.ts";
import { createRetention } from "./turn/retain.ts";
import { createRollbackSession } from "./turn/rollback.ts";
import { createSealing } from "./turn/seal.ts";
import { createSettleIntent } from "./turn/settle.ts";
import { createCreateSnapshot } from "./turn/snapshot.ts";
import { createSnapshotTool } from "./turn/tool-snapshot.ts";
import { HOST_VERSION } from "./version.ts";

/** What a host is made with. */
export interface HostOptions {
  readonly config: HostConfig;
  /** Where everything of this host lives. */
  readonly dataDirectory: string;
  readonly log: Log;
  /** The PATH that system programs are looked up in. */
  readonly path: string;
  /** Take the place of the configured backends. */
  readonly backends?: Backends;
  /** Where the programs of template mini are; Debian's places unless given. */
  readonly miniSources?: MiniSources;
  readonly clock?: Clock;
  /** Hears of the places in operations where a crash makes a difference. */
  readonly reach?: Reach;
}

export interface Backends {
  readonly storage: Storage;
  readonly runtime: Runtime;
}

/** How long a stop waits for operations that were told to stop. */
const SETTLE_MS = 2_000;

/** The storage and the runtime that the configuration names, not opened yet. */
export async function composeBackends(options: Omit<HostOptions, "log">): Promise<Backends> {
  const { config, dataDirectory } = options;
  const runner = createChildCommandRunner({ path: options.path });
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const storage =
    config.storageBackend === "zfs"
      ? createZfsStorage({
          runner,
          home: dataDirectory,
          poolSizeBytes: await poolSizeBytes(config, dataDirectory),
          ...(config.poolName === null ? {} : { poolName: config.poolName }),
          basesDataset: config.basesDataset,
          sessionsDataset: config.sessionsDataset,
        })
      : createLocalDiskStorage({ runner, root: config.sessionsRootDir ?? join(dataDirectory, "disk") });
  const stateDirectory = join(dataDirectory, "containers");
  const runtime =
    config.containerRuntime === "gvisor"
      ? createGvisorRuntime({ runner, stateDirectory })
      : createNoneRuntime({ runner, stateDirectory });
  return { storage, runtime };
}

/** A running host. Disposing it freezes the sandboxes and keeps everything. */
export interface ComposedHost extends AsyncDisposable {
  readonly host: Host;
  /** Ends what goes on in the background and closes the records, and nothing else: what a crash leaves. */
  abandon(): Promise<void>;
}

/** Opens the backends, recovers the sessions and puts the use cases together. The only place that names adapters. */
export async function composeHost(options: HostOptions, call: { readonly signal: AbortSignal }): Promise<ComposedHost> {
  const { config, dataDirectory, log } = options;
  const clock = options.clock ?? systemClock;
  const reach = options.reach ?? PASS_ON;
  const runner = createChildCommandRunner({ path: options.path });
  const { storage, runtime } = options.backends ?? (await composeBackends(options));
  const stagingPath = join(dataDirectory, "staging");
  await rm(stagingPath, { recursive: true, force: true });
  const [{ version }, { remounted }] = await Promise.all([runtime.open(call), storage.open(call)]);
  if (runtime.isolation === "none") log.warn("runtime none: tools run on this machine WITHOUT ISOLATION");
  log.info({ storage: storage.kind, runtime: runtime.kind, runtimeVersion: version }, "backends are open");

  const records = await openRecords(join(dataDirectory, "host.db"));
  const events = createSessionEvents({ clock });
  const registry = createRegistry({ maxSessions: config.maxSessions, events });
  const receipts = createReceipts({ records, clock });
  const containers = createContainers({ storage, runtime, log });
  const activity = createActivity({ clock });
  const husks = createHusks({ records, storage, log });
  await husks.load();
  const reaper = createReaper({ registry, records, storage, containers, runtime, husks, clock, log, reach });
  const templates = createTemplates({
    storage,
    runner,
    stagingPath,
    limits: { maxBytes: config.maxTemplateSize, maxEntries: MAX_TEMPLATE_ENTRIES },
  });
  const health = createHealth({
    storage,
    registry,
    reaper,
    husks,
    clock,
    warnThreshold: config.poolSpaceWarnThreshold,
    critThreshold: config.poolSpaceCritThreshold,
  });
  const { assertRoom } = health;
  const settle = createSettleIntent({ records, storage, runtime, log });
  const intents = createIntents({ records, settle, log });
  const sources = options.miniSources ?? { busybox: "/bin/busybox", bash: "/bin/bash-static" };
  const [{ quarantined }] = await Promise.all([
    recoverSessions({ registry, records, events, storage, runtime, reaper, settle, log }, call),
    templates.build(MINI, (directory) => fillMini(directory, { sources, runner, ...call }), call),
  ]);
  health.quarantine(quarantined);
  await replaceLostContainers({ registry, runtime, containers, log }, remounted, call);

  const drop = createDropSnapshot({ intents, storage, reach });
  const sealing = createSealing({ records, intents, storage, clock, reach });
  const maxSnapshots = config.maxSnapshotsPerSession;
  const retention = createRetention({ records, storage, intents, dropSnapshot: drop, log, maxSnapshots });
  const turns = { registry, records, receipts, intents, storage, sealing, retention, assertRoom, log, reach };
  const destroySession = createDestroySession({ reaper, clock, reach });
  const maker = createMaker({ registry, records, events, storage, clock, destroySession, reach });
  const pauseSession = createPauseSession({ runtime, containers, intents, clock, log, reach });
  const { pauseDrainTimeout: drainTimeoutMs, healthCheckInterval: intervalMs } = config;
  const expiry = createExpiry({
    registry,
    activity,
    records,
    clock,
    log,
    pauseSession,
    destroySession,
    drainTimeoutMs,
  });
  await expiry.load();
  const runBash = createRunBash({
    runtime,
    containers,
    clock,
    log,
    toolTimeoutMs: config.toolTimeout,
    keepBytes: config.toolOutput,
  });
  const snapshotTool =
    config.perToolSnapshots && storage.capabilities.snapshots === "supported" ? createSnapshotTool(turns) : undefined;
  const stopping = new AbortController();
  const keeper = startKeeper({
    registry,
    records,
    storage,
    runtime,
    containers,
    husks,
    expiry,
    clock,
    log,
    intervalMs,
  });
  const host: Host = {
    clock,
    log,
    records,
    storage,
    runtime,
    registry,
    events,
    activity,
    receipts,
    templates,
    health,
    stopping: stopping.signal,
    createSession: createCreateSession({ registry, records, receipts, templates, maker, assertRoom, reach }),
    destroySession,
    pauseSession,
    resumeSession: createResumeSession({ containers, clock, reach }),
    extendSession: createExtendSession({ receipts, clock }),
    repairSession: createRepairSession({ records, receipts, storage, containers, settle }),
    forkSession: createForkSession({ ...turns, maker }),
    executeTool: createExecuteTool({ ledger: createLedger({ records, clock }), runBash, activity, snapshotTool }),
    completeTurn: createCompleteTurn(turns),
    createSnapshot: createCreateSnapshot(turns),
    deleteSnapshot: createDeleteSnapshot({ ...turns, dropSnapshot: drop }),
    restoreSnapshot: createRestoreSnapshot({ ...turns, maker }),
    diffSnapshots: createDiffSnapshots({ storage, records, runner, clock, log, nodePath: process.execPath }),
    rollbackSession: createRollbackSession({ ...turns, runtime, containers }),
    maxSessions: config.maxSessions,
    version: HOST_VERSION,
    defaults: {
      quotaBytes: config.defaultSessionQuota === 0 ? null : config.defaultSessionQuota,
      limits: {
        pids: config.defaultPids,
        ...(config.defaultCpus === 0 ? {} : { cpus: config.defaultCpus }),
        ...(config.defaultMemory === 0 ? {} : { memoryBytes: config.defaultMemory }),
      },
      pauseDrainTimeoutMs: config.pauseDrainTimeout,
      snapshotPrefix: config.snapshotPrefix,
    },
  };
  return {
    host,
    abandon: async () => {
      await Promise.all([keeper[Symbol.asyncDispose](), reaper[Symbol.asyncDispose]()]);
      await records[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: async () => {
      stopping.abort(new SandboxError("SHUTTING_DOWN", "the host is stopping"));
      await keeper[Symbol.asyncDispose]();
      const idle = Promise.all(registry.all().map(({ serial }) => serial.idle()));
      await atMost(clock, SETTLE_MS, idle);
      await reaper[Symbol.asyncDispose]();
      await freezeSessions({ registry, runtime, log });
      await records[Symbol.asyncDispose]();
    },
  };
}
