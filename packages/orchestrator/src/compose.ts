import { createHash, randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import {
  type Clock,
  createTokenSigner,
  createTokenVerifier,
  type HomeInfo,
  type Log,
  loadOrCreateHomeToken,
  loadOrCreateSigningKeys,
  newSessionId,
  randomToken,
  SandboxError,
  type SigningKeys,
} from "@turnbox/core";
import { createMetrics, createRpcMeter } from "@turnbox/core/metrics";
import {
  createHealthBoard,
  createRpcHandler,
  type ListeningServer,
  listen,
  registerReflection,
  serveMetrics,
} from "@turnbox/core/server";
import { NO_TRACING, type Tracing } from "@turnbox/core/trace";
import { runEvery } from "./async/run-every.ts";
import type { OrchestratorConfig } from "./config.ts";
import { createFleet } from "./fleet/fleet.ts";
import { fleetTags } from "./fleet/registry/fleet-tags.ts";
import type { InstanceRegistry } from "./fleet/registry/instance-registry.ts";
import type { FleetPolicy } from "./fleet/loop/phase.ts";
import { PHASES } from "./fleet/loop/phase-table.ts";
import { createHostTokens } from "./host/host-tokens.ts";
import { createHostTransport } from "./host/host-transport.ts";
import { createNodeSandboxControl } from "./host/node-sandbox-control.ts";
import { keepLocalHosts, launchLocalHosts, localHostIds } from "./provisioner/local-process/launch-local-hosts.ts";
import { createLocalProcessProvisioner } from "./provisioner/local-process/local-process-provisioner.ts";
import type { Provisioner } from "./provisioner/provisioner.ts";
import { parseStaticHost } from "./provisioner/static/static-settings.ts";
import { registerFleetGauges } from "./metrics/fleet-gauges.ts";
import { FLEET_METRICS } from "./metrics/fleet-metrics.ts";
import { meterPorts } from "./metrics/meter-ports.ts";
import { watchSpans } from "./metrics/watch-spans.ts";
import { CONTROL_FILES, CONTROL_SERVICES, createRoutes } from "./rpc/routes.ts";
import { openSqliteStore } from "./store/sqlite/sqlite-store.ts";
import type { Store } from "./store/store.ts";
import { ORCHESTRATOR_VERSION } from "./version.ts";

export interface OrchestratorOptions {
  readonly config: OrchestratorConfig;
  readonly home: string;
  readonly homeInfo: HomeInfo;
  /** The program of the sandbox-host. */
  readonly hostEntry: string;
  /** The whole environment of the sandbox-hosts. */
  readonly hostEnv: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Log;
  /** None unless given. */
  readonly tracing?: Tracing;
}

/** An orchestrator that listens. Disposing it drains the calls, stops the hosts and closes the store, in this order. */
export interface Orchestrator extends AsyncDisposable {
  readonly url: string;
  /**
   * Starts the hosts of this machine and the control loop. Of a new fleet it answers when the first such host is ready to
   * take sandboxes, and throws when none can be. A fleet that comes back serves at once: calls wait for their hosts.
   * Hosts elsewhere are not waited for.
   */
  launchHosts(call: Call): Promise<void>;
  /** Aborts, with the reason, where the fleet came back and none of the hosts of this machine did. */
  readonly failure: AbortSignal;
}

const MAX_CANDIDATES = 5;
const REPORT_TIMEOUT_MS = 5000;
const FIRST_ANSWER_MS = 15_000;
const FIRST_ANSWER_POLL_MS = 250;
const EXPIRE_INTERVAL_MS = 3_600_000;
/** What a host gets on top of its own shutdown timeout before it is ended by force. */
const STOP_MARGIN_MS = 15_000;
/** How long one action of the control loop may take: a launch or a stop of a machine is the longest. */
const ACTION_TIMEOUT_MS = 180_000;
const MAX_ACTIONS_AT_ONCE = 16;
const KEEP_INTERVAL_MS = 30_000;
const RANDOM_STEPS = 2 ** 32;

interface Call {
  readonly signal: AbortSignal;
}

/** Puts the orchestrator together and begins to listen. The only place that names adapters. */
export async function composeOrchestrator(options: OrchestratorOptions, call: Call): Promise<Orchestrator> {
  const { config, home, homeInfo, clock, log, tracing = NO_TRACING } = options;
  const fleetId = config.fleetId ?? homeInfo.id;
  await using stack = new AsyncDisposableStack();

  const onLooseMode = (file: string, mode: number): void => {
    log.warn({ file, mode: mode.toString(8) }, "a secret file can be read by others");
  };
  const keys = loadOrCreateSigningKeys(join(home, "keys"), { onLooseMode });
  const homeToken = loadOrCreateHomeToken(join(home, "token"), { onLooseMode });
  // Hosts on this machine know the home; those elsewhere know the fleet.
  const issuer = config.provisioner === "local" ? homeInfo.id : fleetId;
  const signer = createTokenSigner({ privateKey: keys.privateKey, issuer, clock });
  const verifier = createTokenVerifier({ publicKeys: [keys.publicKey], homeToken, issuer, clock });

  const metrics = createMetrics(FLEET_METRICS, { process: "shown" });
  const metered = meterPorts({ metrics, tracing, clock });
  const store = metered.store(stack.use(await openStore(options, { fleetId, keys }, call)));
  const lifetime = new AbortController();
  let lookNow = (): void => undefined;
  const provisioner = metered.provisioner(
    stack.use(
      await createProvisioner(options, {
        fleetId,
        keys,
        onChange: () => {
          lookNow();
        },
      }),
    ),
  );
  const tokenFor = createHostTokens({ signer, clock });
  const fleet = stack.use(
    createFleet({
      fleetId,
      holder: `${hostname()}-${String(process.pid)}-${randomToken(6)}`,
      provisioner,
      store,
      connectHost: (url) => {
        const transport = createHostTransport(url, { interceptors: [tracing.client] });
        return metered.connection(createNodeSandboxControl({ url, tokenFor, transport }));
      },
      meter: metered,
      policy: policyOf(config),
      phases: PHASES,
      rules: { headroom: config.headroom, maxCandidates: MAX_CANDIDATES },
      times: {
        intervalMs: config.fleetHealthInterval,
        reportTimeoutMs: REPORT_TIMEOUT_MS,
        createTimeoutMs: config.createTimeout,
        actionTimeoutMs: ACTION_TIMEOUT_MS,
        wakeTimeoutMs: config.wakeTimeout,
        leaseTtlMs: config.leaseTtl,
        bootTimeMs: config.bootTime,
      },
      maxWaitingCreates: config.maxWaitingCreates,
      maxActionsAtOnce: MAX_ACTIONS_AT_ONCE,
      newInstanceId: config.provisioner === "local" ? freeLocalId : () => `i-${randomToken(12)}`,
      newSessionId,
      clock,
      logger: log,
      shutdown: lifetime.signal,
    }),
  );
  const { registry } = fleet;
  const waitingCreates = (counting: Call): Promise<number> => store.waitingCreates(counting);
  registerFleetGauges(metrics, { fleet: registry, waitingCreates, epoch: () => fleet.leadership.lead?.epoch });

  // Whoever were answered before this would hear that there are no sandboxes.
  await registry.sync(call);

  const background: Promise<void>[] = [];
  stack.defer(async () => {
    lookNow = () => undefined;
    lifetime.abort(new SandboxError("SHUTTING_DOWN", "the orchestrator is stopping"));
    await Promise.all(background);
  });
  const board = createHealthBoard();
  const routes = createRoutes({
    control: metered.control(fleet.control),
    signer,
    fleet: registry,
    operations: fleet.operations,
    waitingCreates,
    clock,
    version: ORCHESTRATOR_VERSION,
  });
  const calls = createRpcHandler({
    verifier,
    log,
    clock,
    meter: createRpcMeter(metrics, clock),
    outerInterceptors: [tracing.server],
    shutdownSignal: lifetime.signal,
    routes: (router) => {
      routes(router);
      board.register(router);
      registerReflection(router, CONTROL_FILES);
    },
  });
  const server: ListeningServer = stack.use(
    await listen({
      host: config.bindAddress,
      port: config.port,
      handler: serveMetrics(calls, { verifier, render: metrics.render }),
      keys: "present",
      drainMs: config.shutdownTimeout,
      ...tlsOf(config),
    }),
  );
  const setHealth = (status: "serving" | "not_serving"): void => {
    for (const service of ["", ...CONTROL_SERVICES]) board.set(service, status);
  };
  stack.defer(() => {
    setHealth("not_serving");
  });

  background.push(
    watchSpans({ fleet: registry, metrics, clock }, { signal: lifetime.signal }).catch((error: unknown) => {
      log.error({ err: error }, "launches and drains are no longer timed");
    }),
    runEvery({
      clock,
      log,
      signal: lifetime.signal,
      what: "expire idempotency keys",
      intervalMs: EXPIRE_INTERVAL_MS,
      work: (round) => store.expireIdempotent(clock.nowMs(), round),
    }),
  );

  const failure = new AbortController();
  const fail = (error: unknown): void => {
    if (!lifetime.signal.aborted) failure.abort(error);
  };
  const launchLocal = async (launch: Call): Promise<void> => {
    const local = {
      provisioner,
      tags: fleetTags(fleetId),
      count: config.hosts,
      isWanted: (instanceId: string) => registry.row(instanceId)?.goal !== "terminated",
      log,
    };
    await launchLocalHosts(local, launch);
    await untilAnswered(registry, clock, launch);
    background.push(
      runEvery({
        clock,
        log,
        signal: lifetime.signal,
        what: "keep the local hosts",
        intervalMs: KEEP_INTERVAL_MS,
        work: (round) => keepLocalHosts(local, round),
      }),
    );
  };

  const owned = stack.move();
  return {
    url: server.url,
    launchHosts: async (launch) => {
      if (config.provisioner === "local") {
        const isNew = registry.allIds().length === 0;
        const up = launchLocal(launch);
        if (isNew) await up;
        else background.push(up.catch(fail));
        await registry.sync(launch);
      }
      background.push(fleet.run({ signal: lifetime.signal }));
      lookNow = () => {
        fleet.loop.wake();
        // Callers may wait for a host of this machine, and asking it costs next to nothing.
        if (config.provisioner === "local") registry.refresh({ signal: lifetime.signal }).catch(() => undefined);
      };
      setHealth("serving");
    },
    failure: failure.signal,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A file in the home, or the database that several orchestrators share. */
async function openStore(
  { config, home, clock }: OrchestratorOptions,
  { fleetId, keys }: Pick<ProvisionerParts, "fleetId" | "keys">,
  call: Call,
): Promise<Store> {
  if (config.storeUrl === null) return await openSqliteStore(join(home, "fleet.db"), { ...call, clock });
  const { openPostgresStore } = await import("./store/postgres/postgres-store.ts");
  const publicKey = keys.publicKey.export({ type: "spki", format: "der" });
  const claim = { fleetId, keyFingerprint: createHash("sha256").update(publicKey).digest("hex") };
  return await openPostgresStore({ url: config.storeUrl.reveal(), claim, clock }, call);
}

interface ProvisionerParts {
  readonly fleetId: string;
  readonly keys: SigningKeys;
  readonly onChange: () => void;
}

async function createProvisioner(
  options: OrchestratorOptions,
  { fleetId, keys, onChange }: ProvisionerParts,
): Promise<Provisioner> {
  const { config, home, clock, log } = options;
  const tags = fleetTags(fleetId);
  switch (config.provisioner) {
    case "local":
      return createLocalProcessProvisioner({
        nodePath: process.execPath,
        hostEntry: options.hostEntry,
        home,
        env: options.hostEnv,
        readyTimeoutMs: config.hostReadyTimeout,
        stopTimeoutMs: config.shutdownTimeout + STOP_MARGIN_MS,
        clock,
        logger: log,
        onChange,
      });
    case "static": {
      const { createStaticProvisioner } = await import("./provisioner/static/static-provisioner.ts");
      return createStaticProvisioner({ hosts: config.staticHosts.map(parseStaticHost), tags, clock });
    }
    case "ec2": {
      const { createEc2ProvisionerFromConfig } = await import("./provisioner/ec2/ec2-provisioner-from-config.ts");
      const publicKeyPem = keys.publicKey.export({ type: "spki", format: "pem" }).toString();
      return createEc2ProvisionerFromConfig({
        config,
        fleetId,
        tags,
        publicKeyPem,
        clock,
        logger: log,
        random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
      });
    }
  }
}

/** On this machine there are as many hosts as the configuration says, neither more nor fewer. */
function policyOf(config: OrchestratorConfig): FleetPolicy {
  const isFixed = config.provisioner === "local";
  return {
    minInstances: isFixed ? config.hosts : config.minInstances,
    maxInstances: isFixed ? config.hosts : config.maxInstances,
    warmPoolTarget: isFixed ? 0 : config.warmPoolTarget,
    idleCooldownMs: config.idleCooldown,
    provisionTimeoutMs: config.provisionTimeout,
    drainTimeoutMs: config.drainTimeout,
    maxConcurrentProvisions: config.maxConcurrentProvisions,
    healthyThreshold: config.healthyThreshold,
    unhealthyThreshold: config.unhealthyThreshold,
    maxTerminateRetries: config.maxTerminateRetries,
  };
}

function freeLocalId(taken: ReadonlySet<string>): string {
  return localHostIds(taken.size + 1).find((instanceId) => !taken.has(instanceId)) ?? "local-1";
}

/** Waits for the first host that has answered a question; one that announced itself and stays silent is no host. */
async function untilAnswered(registry: InstanceRegistry, clock: Clock, call: Call): Promise<void> {
  const deadlineMs = clock.monotonicMs() + FIRST_ANSWER_MS;
  for (;;) {
    await registry.refresh(call);
    const instances = registry.instances();
    if (instances.some(({ health }) => health !== "unknown")) return;
    if (clock.monotonicMs() >= deadlineMs) {
      const why = instances.map(({ instanceId, message }) => `${instanceId}: ${message}`).join("; ");
      throw new SandboxError("HOST_UNREACHABLE", `no host answers (${why})`);
    }
    await clock.sleep(FIRST_ANSWER_POLL_MS, call);
  }
}

function tlsOf(config: OrchestratorConfig) {
  const { tlsCertificatePath, tlsKeyPath } = config;
  if (tlsCertificatePath === null || tlsKeyPath === null) return {};
  return { tls: { certificate: readFileSync(tlsCertificatePath), privateKey: readFileSync(tlsKeyPath) } };
}
