import { join } from "node:path";
import {
  createTokenSigner,
  createTokenVerifier,
  loadOrCreateHomeToken,
  loadOrCreateSigningKeys,
  runEvery,
  SandboxError,
} from "@turnbox/core";
import { createMetrics } from "@turnbox/rpc/metrics";
import { NO_TRACING } from "@turnbox/rpc/trace";
import { Background } from "./background.ts";
import { openProvisioner, openStore } from "./compose-backends.ts";
import { composeFleet } from "./compose-fleet.ts";
import { composeServer } from "./compose-server.ts";
import type { Fleet } from "./fleet/fleet.ts";
import { fleetTags } from "./fleet/registry/fleet-tags.ts";
import { registerFleetGauges } from "./metrics/fleet-gauges.ts";
import { FLEET_METRICS, type FleetMetrics } from "./metrics/fleet-metrics.ts";
import { meterPorts } from "./metrics/meter-ports.ts";
import { watchSpans } from "./metrics/watch-spans.ts";
import type { OrchestratorOptions } from "./orchestrator-options.ts";
import { keepLocalHosts, launchLocalHosts } from "./provisioner/local-process/launch-local-hosts.ts";
import type { Provisioner } from "./provisioner/provisioner.ts";
import { type LocalHosts, type Orchestrator, RunningOrchestrator } from "./running-orchestrator.ts";
import type { Store } from "./store/store.ts";

const EXPIRE_INTERVAL_MS = 3_600_000;

/**
 * Puts the orchestrator together and begins to listen. The `compose` files alone name adapters. All that is opened is on
 * one stack: what throws half-way leaves nothing open, and disposal ends the server, then the background, then the fleet.
 */
export async function composeOrchestrator(
  options: OrchestratorOptions,
  call: { readonly signal: AbortSignal },
): Promise<Orchestrator> {
  const { clock, log, tracing = NO_TRACING } = options;
  await using stack = new AsyncDisposableStack();
  const owner = openOwner(options);
  const metrics = createMetrics(FLEET_METRICS, { process: "shown" });
  const metered = meterPorts({ metrics, tracing, clock });
  const background = new Background(() => new SandboxError("SHUTTING_DOWN", "the orchestrator is stopping"));
  // Machines may change before the orchestrator runs.
  const late: { running?: RunningOrchestrator } = {};
  const onChange = (): void => late.running?.lookNow();
  const store = metered.store(stack.use(await openStore(options, owner, call)));
  const provisioner = metered.provisioner(stack.use(await openProvisioner(options, owner, onChange)));
  const parts = { ...owner, metered, store, provisioner, shutdown: background.signal };
  const fleet = stack.use(composeFleet(options, parts));
  const waitingCreates: Store["waitingCreates"] = (counting) => store.waitingCreates(counting);
  registerFleetGauges(metrics, { fleet: fleet.registry, waitingCreates, epoch: () => fleet.leadership.lead?.epoch });
  // A caller that is served before this would get the answer that there are no sandboxes.
  await fleet.registry.sync(call);
  stack.use(background);
  const serverParts = { ...owner, metrics, metered, fleet, waitingCreates, shutdownSignal: background.signal };
  const { server, setHealth } = await composeServer(options, serverParts);
  stack.use(server);
  stack.defer(() => {
    setHealth("not_serving");
  });
  startBackground(options, { background, fleet, metrics, store });
  late.running = new RunningOrchestrator({
    url: server.url,
    fleet,
    background,
    localHosts: localHostsOf(options, fleet, provisioner),
    onServing: () => {
      setHealth("serving");
    },
    clock,
    log,
    owned: stack.move(),
  });
  return late.running;
}

/** Whose fleet it is: its id and keys, and what makes and checks tokens with them. */
function openOwner({ config, home, homeInfo, clock, log }: OrchestratorOptions) {
  const onLooseMode = (file: string, mode: number): void => {
    log.warn({ file, mode: mode.toString(8) }, "a secret file can be read by others");
  };
  const fleetId = config.fleetId ?? homeInfo.id;
  const keys = loadOrCreateSigningKeys(join(home, "keys"), { onLooseMode });
  const homeToken = loadOrCreateHomeToken(join(home, "token"), { onLooseMode });
  // Hosts on this machine know the home; those elsewhere know the fleet.
  const issuer = config.provisioner === "local" ? homeInfo.id : fleetId;
  const signer = createTokenSigner({ privateKey: keys.privateKey, issuer, clock });
  const verifier = createTokenVerifier({ publicKeys: [keys.publicKey], homeToken, issuer, clock });
  return { fleetId, keys, signer, verifier };
}

interface BackgroundParts {
  readonly background: Background;
  readonly fleet: Fleet;
  readonly metrics: FleetMetrics;
  readonly store: Store;
}

function startBackground({ clock, log }: OrchestratorOptions, parts: BackgroundParts): void {
  const { background, fleet, metrics, store } = parts;
  background.run((call) =>
    watchSpans({ fleet: fleet.registry, metrics, clock }, call).catch((error: unknown) => {
      log.error({ err: error }, "launches and drains are no longer timed");
    }),
  );
  background.run(({ signal }) =>
    runEvery((round) => store.expireIdempotent(clock.nowMs(), round), {
      clock,
      signal,
      intervalMs: EXPIRE_INTERVAL_MS,
      onFailure: (failure) => {
        log.error({ err: SandboxError.from(failure) }, "idempotency keys could not be expired");
      },
    }),
  );
}

function localHostsOf(
  { config, log }: OrchestratorOptions,
  { registry }: Fleet,
  provisioner: Provisioner,
): LocalHosts | undefined {
  if (config.provisioner !== "local") return undefined;
  const local = {
    provisioner,
    tags: fleetTags(registry.fleetId),
    count: config.hosts,
    isWanted: (instanceId: string) => registry.row(instanceId)?.goal !== "terminated",
    log,
  };
  return {
    launch: (call) => launchLocalHosts(local, call),
    keep: (call) => keepLocalHosts(local, call),
  };
}
