import { rm } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { createChildCommandRunner, loadOrCreateHomeToken, type Log, SandboxError, systemClock } from "@turnbox/core";
import { atMost } from "./async/at-most.ts";
import { type BackendOptions, type Backends, composeBackends, logBackends } from "./compose-backends.ts";
import { createContainers } from "./container/container.ts";
import { createRecentMounts } from "./container/recent-mounts.ts";
import { createCordon } from "./cordon/cordon.ts";
import { createFence } from "./cordon/fence.ts";
import { createChangeFiles } from "./file/change-files.ts";
import { createSessionFiles } from "./file/session-files.ts";
import { DataSpace } from "./health/data-space.ts";
import { createHealth } from "./health/health.ts";
import { tellMembarrier } from "./health/tell-membarrier.ts";
import { createSessionUseCase } from "./lifecycle/create.ts";
import { createDestroySession } from "./lifecycle/destroy.ts";
import { createExpiry } from "./lifecycle/expire.ts";
import { createExtendSession } from "./lifecycle/extend.ts";
import { createHusks } from "./lifecycle/husk.ts";
import { createMaker } from "./lifecycle/make.ts";
import { createPauseSession, createResumeSession } from "./lifecycle/pause.ts";
import { createRemovals } from "./lifecycle/remove.ts";
import { createRepairSession } from "./lifecycle/repair.ts";
import { createUpdateNetworkPolicy } from "./lifecycle/update-network-policy.ts";
import { createDial } from "./port-access/dial.ts";
import { createPorts } from "./port-access/ports.ts";
import { readTls } from "./port-access/read-tls.ts";
import { startProcessParts } from "./process/process-parts.ts";
import { openRecords } from "./record/records.ts";
import { ResultFiles } from "./record/result-files.ts";
import { startBackground } from "./recovery/background.ts";
import { recordCleanStop } from "./recovery/clean-stop.ts";
import { adoptNetworks, watchNetwork } from "./recovery/network-watch.ts";
import { readBoot, surviveReboot } from "./recovery/reboot.ts";
import { recoverSessions } from "./recovery/recover.ts";
import { freezeSessions } from "./recovery/shutdown.ts";
import { replaceLostContainers } from "./recovery/storage-watch.ts";
import type { Host } from "./rpc/host.ts";
import { INIT_PROGRAM } from "./runtime/gvisor/oci-spec.ts";
import { sessionCeilings, sessionDefaults, sessionPlaces } from "./session-bounds.ts";
import { createActivity } from "./session/activity.ts";
import { type CrashPointHook, PASS_ON } from "./session/crash-point.ts";
import { createSessionEvents } from "./session/events.ts";
import { createIntents } from "./session/intent.ts";
import { ReceiptBounds } from "./session/receipt-bounds.ts";
import { createReceipts } from "./session/receipts.ts";
import { createRegistry } from "./session/registry.ts";
import { createSpace } from "./session/space.ts";
import type { HeadRef } from "./storage/storage.ts";
import { MAX_TEMPLATE_ENTRIES } from "./template/archive.ts";
import { fillMini, MINI, type MiniSources } from "./template/mini.ts";
import { createTemplates } from "./template/templates.ts";
import { createExecuteTool } from "./tool/execute.ts";
import { createLedger } from "./tool/ledger.ts";
import { createToolOutputs } from "./tool/outputs.ts";
import { createRunTool } from "./tool/run-tool.ts";
import { createRunningCalls } from "./tool/running-calls.ts";
import { StoredResults } from "./tool/stored-results.ts";
import { createToolCalls } from "./tool/tool-calls.ts";
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
import { startWarmPool } from "./warm/start-pool.ts";

/** What a host is made with. */
export interface HostOptions extends BackendOptions {
  readonly log: Log;
  /** Take the place of the configured backends. */
  readonly backends?: Backends;
  /** Where the programs of template mini are; Debian's places unless given. */
  readonly miniSources?: MiniSources;
  /** Which boot of the machine this is; the kernel's word unless given. */
  readonly bootId?: string;
  /** Hears of the places in operations where a crash makes a difference. */
  readonly crashPoint?: CrashPointHook;
}

/** How long a stop waits for operations that were told to stop. */
const SETTLE_MS = 2_000;

/** A running host. Disposing it freezes the sandboxes and keeps everything. */
export interface ComposedHost extends AsyncDisposable {
  readonly host: Host;
  /** Settles when all that an earlier service left has been looked at; the host serves meanwhile. */
  readonly recovered: Promise<void>;
  /** Ends what goes on in the background and closes the records, and nothing else: what a crash leaves. */
  abandon(): Promise<void>;
}

/** Opens the backends, recovers the sessions and puts the use cases together. The only place that names adapters. */
export async function composeHost(options: HostOptions, call: { readonly signal: AbortSignal }): Promise<ComposedHost> {
  const { config, dataDirectory, log } = options;
  const clock = options.clock ?? systemClock;
  const crashPoint = options.crashPoint ?? PASS_ON;
  const runner = createChildCommandRunner({ path: options.path, ...(options.aide && { aide: options.aide }) });
  const { storage, runtime, network, workers: fileWorkers } = options.backends ?? (await composeBackends(options));
  const stagingPath = join(dataDirectory, "staging");
  const outputsPath = join(dataDirectory, "tool-output");
  // First of all: a host that may not use the records changes nothing of the home.
  const recordsPath = join(dataDirectory, "host.db");
  const records = await openRecords(recordsPath);
  for (const path of [stagingPath, outputsPath]) await rm(path, { recursive: true, force: true });
  const onRemounted = (heads: readonly HeadRef[]): Promise<void> => records.call("noteLostHeads", heads);
  const [{ version }] = await Promise.all([runtime.open(call), storage.open({ ...call, onRemounted })]).catch(
    async (thrown: unknown) => {
      await Promise.all([records[Symbol.asyncDispose](), fileWorkers[Symbol.asyncDispose]()]);
      throw thrown;
    },
  );
  logBackends(log, { storage: storage.kind, runtime, version });
  if (runtime.kind === "gvisor") {
    tellMembarrier({ runner, log }, call).catch((err: unknown) => {
      log.warn({ err }, "whether runsc starts without membarrier is not known");
    });
  }

  const boot = await readBoot(records, options.bootId);
  const events = createSessionEvents({ clock });
  const maxSessions = sessionPlaces(config, totalmem());
  const registry = createRegistry({ maxSessions, maxEnvironmentBytes: config.environmentTotal, events });
  const receiptBounds = new ReceiptBounds({
    records,
    clock,
    log,
    session: { count: config.maxReceiptsPerSession, bytes: config.receiptSession },
    host: { count: config.maxReceiptsTotal, bytes: config.receiptTotal },
  });
  const receipts = createReceipts({ records, clock, bounds: receiptBounds });
  const recentMounts = createRecentMounts(clock);
  const containers = createContainers({ storage, runtime, network, recentMounts, clock, log });
  const activity = createActivity({ clock });
  const husks = createHusks({ records, storage, log });
  await husks.load();
  const removals = createRemovals({ registry, records, storage, containers, runtime, husks, clock, log, crashPoint });
  const templates = createTemplates({
    storage,
    runner,
    stagingPath,
    limits: { maxBytes: config.maxTemplateSize, maxEntries: MAX_TEMPLATE_ENTRIES },
  });
  const dataSpace = new DataSpace({ directory: dataDirectory, clock, reserveBytes: config.dataReserve });
  await dataSpace.look();
  const health = createHealth({
    storage,
    dataSpace,
    registry,
    removals,
    husks,
    clock,
    warnThreshold: config.poolSpaceWarnThreshold,
    critThreshold: config.poolSpaceCritThreshold,
  });
  const { assertRoom } = health;
  const assertDataRoom = (): void => {
    dataSpace.assertRoom();
  };
  const { sizeBytes } = await storage.status(call).catch(() => ({ sizeBytes: 0 }));
  const machine = { cpus: availableParallelism(), memoryBytes: totalmem() };
  const ceilings = sessionCeilings(config, { ...machine, poolBytes: sizeBytes === 0 ? undefined : sizeBytes });
  const defaults = sessionDefaults(config, ceilings);
  const [cordon, fence] = await Promise.all([createCordon({ records }), createFence({ records })]);
  const settle = createSettleIntent({ records, storage, runtime, log });
  const intents = createIntents({ records, settle, log });
  const sources = options.miniSources ?? { busybox: "/bin/busybox", bash: "/bin/bash-static" };
  const composing = Promise.withResolvers<undefined>();
  const recovering = { registry, records, events, storage, runtime, removals, settle, clock, log };
  const [recovery] = await Promise.all([
    recoverSessions({ ...recovering, bootId: boot.bootId, composed: composing.promise }, call),
    templates.build(MINI, (directory) => fillMini(directory, { sources, runner, ...call }), call),
  ]);
  const reconcilingMs = clock.monotonicMs();
  const recovered = recovery.done.then(({ quarantined }) => {
    health.quarantine(quarantined);
    const durationMs = Math.round(clock.monotonicMs() - reconcilingMs);
    log.info({ sessions: registry.size, durationMs }, "records and storage are reconciled");
  });
  const survivors = { registry, records, runtime, containers, log };
  await replaceLostContainers(survivors, await records.call("listLostHeads", null), call);
  await surviveReboot(survivors, boot, call);

  const drop = createDropSnapshot({ intents, storage, crashPoint });
  const sealing = createSealing({ records, intents, storage, clock, crashPoint });
  const maxSnapshots = config.maxSnapshotsPerSession;
  const retention = createRetention({ registry, records, storage, intents, dropSnapshot: drop, log, maxSnapshots });
  const turns = {
    registry,
    records,
    receipts,
    intents,
    storage,
    sealing,
    retention,
    cordon,
    assertRoom,
    ceilings,
    log,
    crashPoint,
  };
  const destroySession = createDestroySession({ records, removals, clock, crashPoint });
  const space = createSpace({ storage, activity, clock });
  const maker = createMaker({
    registry,
    records,
    events,
    storage,
    space,
    recentMounts,
    clock,
    destroySession,
    crashPoint,
  });
  const parts = { maker, registry, records, storage, events, containers, runtime, network, health, templates };
  const start = {
    ...parts,
    defaults,
    config,
    left: recovery.ready,
    recovered,
    bootId: boot.bootId,
    crashPoint,
    clock,
    log,
  };
  const warm = startWarmPool(start, call);
  const pauseSession = createPauseSession({ runtime, containers, intents, clock, log, crashPoint });
  const { pauseDrainTimeout: drainTimeoutMs, healthCheckInterval: intervalMs } = config;
  const timed = { registry, activity, records, clock, log };
  const expiry = createExpiry({ ...timed, pauseSession, destroySession, drainTimeoutMs });
  await expiry.load();
  const sessionFiles = createSessionFiles({ storage, workers: fileWorkers });
  const runTool = createRunTool({
    runtime,
    containers,
    files: sessionFiles,
    clock,
    log,
    toolTimeoutMs: config.toolTimeout,
    keepBytes: config.toolOutput,
  });
  const snapshotTool =
    config.perToolSnapshots && storage.capabilities.snapshots === "supported" ? createSnapshotTool(turns) : undefined;
  const outputs = createToolOutputs({
    directory: outputsPath,
    clock,
    limits: { sessionBytes: config.toolJournalSession, hostBytes: config.toolJournalTotal },
  });
  const results = new StoredResults({
    records,
    files: new ResultFiles(recordsPath),
    bounds: { sessionBytes: config.toolResultSession, hostBytes: config.toolResultTotal },
  });
  const calls = { ledger: createLedger({ records, results, clock }), outputs, running: createRunningCalls() };
  const stopping = new AbortController();
  const background = startBackground({
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
    callRetention: { ms: config.toolCallRetention, perSession: config.maxToolCallsPerSession },
    outputs,
    results,
    receiptBounds,
    dataSpace,
    warm,
    health,
  });
  await adoptNetworks({ registry, network, log }, call);
  const networkWatch = watchNetwork({ registry, network, clock, log });
  const program: readonly [string, ...string[]] = runtime.kind === "gvisor" ? [INIT_PROGRAM] : ["busybox"];
  const relay = (port: number): readonly [string, ...string[]] => [...program, "nc", "127.0.0.1", String(port)];
  const ports = createPorts({
    registry,
    receipts,
    events,
    activity,
    clock,
    log,
    dial: createDial({ runtime, relay }),
    key: loadOrCreateHomeToken(join(dataDirectory, "port-key")),
    bindAddress: config.bindAddress,
    advertiseAddr: config.advertiseAddr,
    tls: await readTls(config),
  });
  await ports.load();
  const processes = await startProcessParts(
    {
      directory: join(dataDirectory, "processes"),
      storage,
      workers: fileWorkers,
      journalQuotaBytes: config.processJournalSession,
      maxRunning: config.maxProcessesPerSession,
      records,
      receipts,
      registry,
      events,
      runtime,
      containers,
      activity,
      ports,
      relay,
      clock,
      log,
    },
    call,
  );
  const host: Host = {
    ...processes.parts,
    launchProcess: async (...launch) => {
      assertDataRoom();
      return await processes.parts.launchProcess(...launch);
    },
    clock,
    log,
    records,
    storage,
    runtime,
    registry,
    events,
    activity,
    space,
    receipts,
    templates,
    health,
    cordon,
    fence,
    files: sessionFiles,
    changeFiles: createChangeFiles({ activity }),
    fileWorkers,
    stopping: stopping.signal,
    createSession: createSessionUseCase({
      registry,
      records,
      receipts,
      templates,
      maker,
      warm,
      cordon,
      assertRoom,
      crashPoint,
    }),
    warm,
    destroySession,
    pauseSession,
    resumeSession: createResumeSession({ containers, clock, crashPoint }),
    extendSession: createExtendSession({ receipts, clock }),
    repairSession: createRepairSession({ records, receipts, storage, containers, settle }),
    forkSession: createForkSession({ ...turns, maker }),
    executeTool: createExecuteTool({ ...calls, runTool, activity, snapshotTool, assertRoom: assertDataRoom }),
    toolCalls: createToolCalls(calls),
    completeTurn: createCompleteTurn(turns),
    createSnapshot: createCreateSnapshot(turns),
    deleteSnapshot: createDeleteSnapshot({ ...turns, dropSnapshot: drop }),
    network,
    ports,
    updateNetworkPolicy: createUpdateNetworkPolicy({ receipts, runtime, network, containers }),
    restoreSnapshot: createRestoreSnapshot({ ...turns, maker }),
    diffSnapshots: createDiffSnapshots({ storage, records, runner, clock, log, nodePath: process.execPath }),
    rollbackSession: createRollbackSession({ ...turns, runtime, containers, toolTimeoutMs: config.toolTimeout }),
    maxSessions,
    version: HOST_VERSION,
    defaults,
    ceilings,
  };
  composing.resolve(undefined);
  return {
    host,
    recovered,
    abandon: async () => {
      await processes.abandon();
      await warm.abandon();
      await Promise.all([background[Symbol.asyncDispose](), removals[Symbol.asyncDispose]()]);
      await Promise.all([ports[Symbol.asyncDispose](), networkWatch[Symbol.asyncDispose]()]);
      await Promise.all([fileWorkers[Symbol.asyncDispose](), outputs[Symbol.asyncDispose]()]);
      await records[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: async () => {
      stopping.abort(new SandboxError("SHUTTING_DOWN", "the host is stopping"));
      await background[Symbol.asyncDispose]();
      await processes.close();
      await atMost(clock, SETTLE_MS, warm[Symbol.asyncDispose]());
      const idle = Promise.all(registry.all().map(({ serial }) => serial.idle()));
      const settled = await atMost(clock, SETTLE_MS, idle);
      await atMost(clock, SETTLE_MS, Promise.all(registry.all().map((session) => containers.settled(session))));
      await removals[Symbol.asyncDispose]();
      await Promise.all([ports[Symbol.asyncDispose](), networkWatch[Symbol.asyncDispose]()]);
      await Promise.all([fileWorkers[Symbol.asyncDispose](), outputs[Symbol.asyncDispose]()]);
      await atMost(clock, SETTLE_MS, runtime.close({ signal: AbortSignal.timeout(SETTLE_MS) }));
      const frozen = await freezeSessions({ registry, runtime, log });
      if (settled === "ended" && frozen === "all_frozen")
        await recordCleanStop({ records, storage, log, bootId: boot.bootId });
      await records[Symbol.asyncDispose]();
    },
  };
}
