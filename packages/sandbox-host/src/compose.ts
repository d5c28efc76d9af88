import { SandboxError } from "@turnbox/core";
import { Assembly } from "./assembly.ts";
import { type BaseParts, composeBase } from "./compose-base.ts";
import { composeLifecycle } from "./compose-lifecycle.ts";
import { composeTools, composeTurns } from "./compose-operations.ts";
import { composeProcesses } from "./compose-processes.ts";
import { composeRecovery } from "./compose-recovery.ts";
import { composeSessions, type SessionParts } from "./compose-sessions.ts";
import type { Cordon } from "./cordon/cordon.ts";
import type { Fence } from "./cordon/fence.ts";
import { readHostStats } from "./health/stats.ts";
import type { HostOptions } from "./compose-options.ts";
import type { DestroySession } from "./lifecycle/destroy.ts";
import type { Records } from "./record/records.ts";
import { startBackground } from "./recovery/background.ts";
import { adoptNetworks, watchNetwork } from "./recovery/network-watch.ts";
import type { GaugedParts } from "./rpc/metrics/host-gauges.ts";
import type { ServiceParts } from "./rpc/routes.ts";
import type { Registry } from "./session/registry.ts";
import { readSessionStats } from "./session/stats.ts";
import type { Templates } from "./template/templates.ts";
import { HOST_VERSION } from "./version.ts";
import type { WarmPool } from "./warm/pool.ts";

/** The use cases of a host. Each service, and what measures them, says by itself what it needs of it. */
export type Host = ServiceParts &
  GaugedParts & {
    readonly cordon: Cordon;
    readonly fence: Fence;
    readonly records: Records;
    readonly registry: Registry;
    readonly templates: Templates;
    readonly warm: WarmPool;
    readonly destroySession: DestroySession;
  };

/** A running host. Disposing it freezes the sandboxes and keeps everything. */
export interface ComposedHost extends AsyncDisposable {
  readonly host: Host;
  /** Settles when all that an earlier service left has been looked at; the host serves meanwhile. */
  readonly recovered: Promise<void>;
  /** Ends what goes on in the background and closes the records, and nothing else: what a crash leaves. */
  abandon(): Promise<void>;
}

type Call = { readonly signal: AbortSignal };

/**
 * Opens the backends, recovers the sessions and puts the use cases together. The `compose` files alone name adapters. All
 * parts are on one stack: what throws half-way leaves nothing open.
 */
export async function composeHost(options: HostOptions, call: Call): Promise<ComposedHost> {
  await using failing = new AsyncDisposableStack();
  const assembly = failing.use(new Assembly({ log: options.log, hook: options.onPart }));
  const base = await composeBase(options, assembly, call);
  const parts = { ...base, ...(await composeSessions(base, assembly, call)) };
  const recovery = await composeRecovery(options, parts, assembly, call);
  const lifecycle = await composeLifecycle({ ...parts, ...recovery }, assembly, call);
  const turns = composeTurns({ ...parts, ...lifecycle });
  const tools = composeTools({ ...parts, ...turns });
  await composeNetworkWatch(base, assembly, call);
  const processes = await composeProcesses(parts, assembly, call);
  composeBackground({ ...parts, ...lifecycle, ...tools }, assembly);
  const stopping = composeStopping(assembly);
  const useCases = { ...lifecycle, ...turns, ...tools, ...processes };
  const host: Host = { ...parts, ...useCases, ...composeReads(base), stopping, version: HOST_VERSION };
  recovery.serveNow();
  failing.move();
  return {
    host,
    recovered: recovery.recovered,
    abandon: () => assembly.end("abandoned"),
    [Symbol.asyncDispose]: () => assembly.end("stopped"),
  };
}

async function composeNetworkWatch(base: BaseParts, assembly: Assembly, call: Call): Promise<void> {
  await adoptNetworks(base, call);
  assembly.use("watch of the network", watchNetwork(base));
}

/** What goes on beside serving. It ends before all else, since it uses all else. */
function composeBackground(
  parts: BaseParts &
    SessionParts &
    Pick<Awaited<ReturnType<typeof composeLifecycle>>, "expiry" | "warm"> &
    Pick<ReturnType<typeof composeTools>, "results">,
  assembly: Assembly,
): void {
  const { config } = parts;
  const callRetention = { ms: config.toolCallRetention, perSession: config.maxToolCallsPerSession };
  const background = startBackground({ ...parts, intervalMs: config.healthCheckInterval, callRetention });
  assembly.use("background", background);
}

/** Aborts as the first step of a stop. */
function composeStopping(assembly: Assembly): AbortSignal {
  const stopping = new AbortController();
  assembly.defer("calls under way", (ending) => {
    if (ending === "stopped") stopping.abort(new SandboxError("SHUTTING_DOWN", "the host is stopping"));
  });
  return stopping.signal;
}

function composeReads(base: BaseParts): Pick<Host, "fileWorkers" | "hostStats" | "sessionStats"> {
  return {
    fileWorkers: base.workers,
    hostStats: () => readHostStats(base),
    sessionStats: (session, call) => readSessionStats(base, session, call),
  };
}
