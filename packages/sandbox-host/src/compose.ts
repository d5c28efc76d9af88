import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createChildCommandRunner, type Log, SandboxError, systemClock } from "@turnbox/core";
import { type HostConfig, poolSizeBytes } from "./config.ts";
import { createHealth } from "./health/health.ts";
import { openRecords } from "./record/records.ts";
import type { Host } from "./rpc/host.ts";
import { createGvisorRuntime } from "./runtime/gvisor/gvisor-runtime.ts";
import { createNoneRuntime } from "./runtime/none/none-runtime.ts";
import type { Runtime } from "./runtime/runtime.ts";
import { createContainers } from "./session/container.ts";
import { createCreateSession } from "./session/create.ts";
import { createDestroySession } from "./session/destroy.ts";
import { createIntents } from "./session/intent.ts";
import { startKeeper } from "./session/keeper.ts";
import { createPauseSession, createResumeSession } from "./session/pause.ts";
import { createReaper } from "./session/reaper.ts";
import { createReceipts } from "./session/receipts.ts";
import { recoverSessions } from "./session/recover.ts";
import { createRegistry } from "./session/registry.ts";
import { freezeSessions } from "./session/shutdown.ts";
import { replaceLostContainers } from "./session/storage-watch.ts";
import { createLocalDiskStorage } from "./storage/local-disk/local-disk-storage.ts";
import type { Storage } from "./storage/storage.ts";
import { createZfsStorage } from "./storage/zfs/zfs-storage.ts";
import { fillMini, MINI, type MiniSources } from "./template/mini.ts";
import { createTemplates } from "./template/templates.ts";
import { createRunBash } from "./tool/bash.ts";
import { createExecuteTool } from "./tool/execute.ts";
import { createLedger } from "./tool/ledger.ts";
import { createCompleteTurn } from "./turn/complete.ts";
import { createRollbackSession } from "./turn/rollback.ts";
import { createSettleIntent } from "./turn/settle.ts";
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
}

export interface Backends {
  readonly storage: Storage;
  readonly runtime: Runtime;
}

const MAX_TEMPLATE_ENTRIES = 2_000_000;
/** How long a stop waits for operations that were told to stop. */
const SETTLE_MS = 2_000;

/** The storage and the runtime that the configuration names, not opened yet. */
export async function composeBackends(options: Omit<HostOptions, "log">): Promise<Backends> {
  const { config, dataDirectory } = options;
  const runner = createChildCommandRunner({ path: options.path });
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const storage =
    config.storageBackend === "zfs"
      ? createZfsStorage({ runner, home: dataDirectory, poolSizeBytes: await poolSizeBytes(config, dataDirectory) })
      : createLocalDiskStorage({ runner, root: join(dataDirectory, "disk") });
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
  const clock = systemClock;
  const runner = createChildCommandRunner({ path: options.path });
  const { storage, runtime } = options.backends ?? (await composeBackends(options));
  const stagingPath = join(dataDirectory, "staging");
  await rm(stagingPath, { recursive: true, force: true });
  const { version } = await runtime.open(call);
  if (runtime.isolation === "none") log.warn("runtime none: tools run on this machine WITHOUT ISOLATION");
  const { remounted } = await storage.open(call);
  log.info({ storage: storage.kind, runtime: runtime.kind, runtimeVersion: version }, "backends are open");

  const records = await openRecords(join(dataDirectory, "host.db"));
  const registry = createRegistry({ maxSessions: config.maxSessions });
  const receipts = createReceipts({ records, clock });
  const containers = createContainers({ storage, runtime, log });
  const reaper = createReaper({ registry, records, storage, containers, runtime, clock, log });
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
    clock,
    warnThreshold: config.poolSpaceWarnThreshold,
    critThreshold: config.poolSpaceCritThreshold,
  });
  const { assertRoom } = health;
  const settle = createSettleIntent({ records, storage, runtime, log });
  const intents = createIntents({ records, settle, log });
  await recoverSessions({ registry, records, storage, runtime, reaper, settle, log }, call);
  await replaceLostContainers({ registry, runtime, containers, log }, remounted, call);
  const sources = options.miniSources ?? { busybox: "/bin/busybox", bash: "/bin/bash-static" };
  await templates.build(MINI, (directory) => fillMini(directory, { sources, runner, ...call }), call);

  const runBash = createRunBash({
    runtime,
    containers,
    clock,
    log,
    toolTimeoutMs: config.toolTimeout,
    keepBytes: config.toolOutput,
  });
  const destroySession = createDestroySession({ reaper, clock });
  const stopping = new AbortController();
  const intervalMs = config.healthCheckInterval;
  const keeper = startKeeper({ registry, records, storage, runtime, containers, clock, log, intervalMs });
  const host: Host = {
    clock,
    log,
    records,
    storage,
    runtime,
    registry,
    receipts,
    templates,
    health,
    stopping: stopping.signal,
    createSession: createCreateSession({
      registry,
      records,
      receipts,
      storage,
      templates,
      clock,
      destroySession,
      assertRoom,
    }),
    destroySession,
    pauseSession: createPauseSession({ runtime, containers, intents, log }),
    resumeSession: createResumeSession({ containers }),
    executeTool: createExecuteTool({ ledger: createLedger({ records, clock }), runBash }),
    completeTurn: createCompleteTurn({ records, receipts, intents, storage, clock, assertRoom }),
    rollbackSession: createRollbackSession({
      records,
      receipts,
      intents,
      storage,
      runtime,
      containers,
      clock,
      log,
      assertRoom,
    }),
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
      await Promise.race([idle, clock.sleep(SETTLE_MS)]);
      await reaper[Symbol.asyncDispose]();
      await freezeSessions({ registry, runtime, log });
      await records[Symbol.asyncDispose]();
    },
  };
}
