import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Clock,
  createTokenSigner,
  createTokenVerifier,
  type HomeInfo,
  type Log,
  loadOrCreateHomeToken,
  loadOrCreateSigningKeys,
  SandboxError,
} from "@turnbox/core";
import {
  createHealthBoard,
  createRpcHandler,
  type ListeningServer,
  listen,
  registerReflection,
} from "@turnbox/core/server";
import { runEvery } from "./async/run-every.ts";
import type { OrchestratorConfig } from "./config.ts";
import { createFleetSandboxControl } from "./control/fleet/fleet-sandbox-control.ts";
import { fleetTags, InstanceRegistry } from "./control/fleet/instance-registry.ts";
import { Slots } from "./control/fleet/slots.ts";
import { createHostTokens } from "./control/node/host-tokens.ts";
import { createNodeSandboxControl } from "./control/node/node-sandbox-control.ts";
import { createLocalProcessProvisioner } from "./instance/local-process/local-process-provisioner.ts";
import type { Provisioner } from "./instance/provisioner.ts";
import { CONTROL_FILES, CONTROL_SERVICES, createRoutes } from "./rpc/routes.ts";
import { openSqliteStore } from "./store/sqlite/sqlite-store.ts";
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
}

/** An orchestrator that listens. Disposing it drains the calls, stops the hosts and closes the store, in this order. */
export interface Orchestrator extends AsyncDisposable {
  readonly url: string;
  /** Starts the hosts. Answers when the first is ready to take sandboxes; throws when none can be. */
  launchHosts(call: { readonly signal: AbortSignal }): Promise<void>;
}

const MAX_CANDIDATES = 5;
const REPORT_TIMEOUT_MS = 5000;
const FIRST_ANSWER_MS = 15_000;
const FIRST_ANSWER_POLL_MS = 250;
const EXPIRE_INTERVAL_MS = 3_600_000;
/** What a host gets on top of its own shutdown timeout before it is ended by force. */
const STOP_MARGIN_MS = 15_000;

/** Puts the orchestrator together and begins to listen. The only place that names adapters. */
export async function composeOrchestrator(
  options: OrchestratorOptions,
  call: { readonly signal: AbortSignal },
): Promise<Orchestrator> {
  const { config, home, homeInfo, clock, log } = options;
  const fleetId = homeInfo.id;
  await using stack = new AsyncDisposableStack();

  const onLooseMode = (file: string, mode: number): void => {
    log.warn({ file, mode: mode.toString(8) }, "a secret file can be read by others");
  };
  const keys = loadOrCreateSigningKeys(join(home, "keys"), { onLooseMode });
  const homeToken = loadOrCreateHomeToken(join(home, "token"), { onLooseMode });
  const signer = createTokenSigner({ privateKey: keys.privateKey, issuer: fleetId, clock });
  const verifier = createTokenVerifier({ publicKeys: [keys.publicKey], homeToken, issuer: fleetId, clock });

  const store = stack.use(await openSqliteStore(join(home, "fleet.db"), call));
  const lifetime = new AbortController();
  let lookNow = (): void => undefined;
  const provisioner = stack.use(
    createLocalProcessProvisioner({
      nodePath: process.execPath,
      hostEntry: options.hostEntry,
      home,
      env: options.hostEnv,
      readyTimeoutMs: config.hostReadyTimeout,
      stopTimeoutMs: config.shutdownTimeout + STOP_MARGIN_MS,
      clock,
      logger: log,
      onChange: () => {
        lookNow();
      },
    }),
  );
  const slots = new Slots(clock);
  const tokenFor = createHostTokens({ signer, clock });
  const registry = stack.use(
    new InstanceRegistry({
      fleetId,
      provisioner,
      store,
      slots,
      connectHost: (url) => createNodeSandboxControl({ url, tokenFor }),
      reportTimeoutMs: REPORT_TIMEOUT_MS,
      clock,
      logger: log,
    }),
  );
  const control = createFleetSandboxControl({
    registry,
    store,
    slots,
    rules: { headroom: config.headroom, maxCandidates: MAX_CANDIDATES },
    clock,
    logger: log,
    createTimeoutMs: config.createTimeout,
    shutdown: lifetime.signal,
  });

  const background: Promise<void>[] = [];
  stack.defer(async () => {
    lookNow = () => undefined;
    lifetime.abort(new SandboxError("SHUTTING_DOWN", "the orchestrator is stopping"));
    await Promise.all(background);
  });
  const board = createHealthBoard();
  const routes = createRoutes({ control, signer, fleet: registry, version: ORCHESTRATOR_VERSION });
  const handler = createRpcHandler({
    verifier,
    log,
    clock,
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
      handler,
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

  const look = { clock, log, signal: lifetime.signal };
  lookNow = () => {
    registry.refresh({ signal: lifetime.signal }).catch((error: unknown) => {
      if (!lifetime.signal.aborted) log.error({ err: SandboxError.from(error) }, "a look at the fleet failed");
    });
  };
  background.push(
    runEvery({
      ...look,
      what: "health",
      intervalMs: config.fleetHealthInterval,
      work: (round) => registry.refresh(round),
    }),
    runEvery({
      ...look,
      what: "expire idempotency keys",
      intervalMs: EXPIRE_INTERVAL_MS,
      work: (round) => store.expireIdempotent(clock.nowMs(), round),
    }),
  );

  const owned = stack.move();
  return {
    url: server.url,
    launchHosts: async (launch) => {
      await launchLocalHosts({ provisioner, fleetId, count: config.hosts, log }, launch);
      await untilAnswered(registry, clock, launch);
      setHealth("serving");
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface LocalHosts {
  readonly provisioner: Provisioner;
  readonly fleetId: string;
  readonly count: number;
  readonly log: Log;
}

/** Launches `local-1` and so on at once; the first that is ready is enough, the others follow. */
async function launchLocalHosts(
  { provisioner, fleetId, count, log }: LocalHosts,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const launches = Array.from({ length: count }, async (_, index) => {
    const instanceId = `local-${index + 1}`;
    try {
      await provisioner.launch({ instanceId, tags: fleetTags(fleetId) }, call);
    } catch (error) {
      if (!call.signal.aborted) log.error({ err: error, instanceId }, "a host cannot be started");
      throw error;
    }
  });
  try {
    await Promise.any(launches);
  } catch (error) {
    throw error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  }
}

/** Waits for the first host that has answered a question; one that announced itself and stays silent is no host. */
async function untilAnswered(
  registry: InstanceRegistry,
  clock: Clock,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + FIRST_ANSWER_MS;
  for (;;) {
    await registry.refresh(call);
    const instances = registry.instances();
    if (instances.some(({ state }) => state === "ready" || state === "active")) return;
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
