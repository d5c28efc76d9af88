import { hostname } from "node:os";
import { join } from "node:path";
import { newSessionId, randomToken, type TokenSigner } from "@turnbox/core";
import { NO_TRACING } from "@turnbox/rpc/trace";
import type { OrchestratorOptions } from "./orchestrator-options.ts";
import type { OrchestratorConfig } from "./config.ts";
import { createFleet, type Fleet, type FleetTimes } from "./fleet/fleet.ts";
import { TemplateArchives } from "./fleet/template/template-archives.ts";
import type { FleetPolicy } from "./fleet/loop/phase.ts";
import { PHASES } from "./fleet/loop/phase-table.ts";
import { createHostTokens } from "./host/host-tokens.ts";
import { createHostTransport } from "./host/host-transport.ts";
import { createNodeSandboxControl } from "./host/node-sandbox-control.ts";
import type { MeteredPorts } from "./metrics/meter-ports.ts";
import { localHostIds } from "./provisioner/local-process/launch-local-hosts.ts";
import type { Provisioner } from "./provisioner/provisioner.ts";
import type { Store } from "./store/store.ts";

export interface FleetParts {
  readonly fleetId: string;
  readonly signer: TokenSigner;
  readonly metered: MeteredPorts;
  readonly store: Store;
  readonly provisioner: Provisioner;
  readonly shutdown: AbortSignal;
}

const MAX_CANDIDATES = 5;
const REPORT_TIMEOUT_MS = 5000;
/** How long one action of the control loop may take: a launch or a stop of a machine is the longest. */
const ACTION_TIMEOUT_MS = 180_000;
const MAX_ACTIONS_AT_ONCE = 16;

export function composeFleet(options: OrchestratorOptions, parts: FleetParts): Fleet {
  const { config, clock, log, tracing = NO_TRACING } = options;
  const { metered, signer } = parts;
  const tokenFor = createHostTokens({ signer, clock });
  return createFleet({
    ...parts,
    holder: `${hostname()}-${String(process.pid)}-${randomToken(6)}`,
    connectHost: (url) => {
      const transport = createHostTransport(url, { interceptors: [tracing.client] });
      return metered.connection(createNodeSandboxControl({ url, tokenFor, transport }));
    },
    meter: metered,
    policy: policyOf(config),
    phases: PHASES,
    rules: { headroom: config.headroom, maxCandidates: MAX_CANDIDATES },
    times: timesOf(config),
    maxWaitingCreates: config.maxWaitingCreates,
    maxActionsAtOnce: MAX_ACTIONS_AT_ONCE,
    archives: new TemplateArchives(join(options.home, "templates")),
    newInstanceId: config.provisioner === "local" ? freeLocalId : () => `i-${randomToken(12)}`,
    newSessionId,
    clock,
    logger: log,
  });
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

const timesOf = (config: OrchestratorConfig): FleetTimes => ({
  intervalMs: config.fleetHealthInterval,
  reportTimeoutMs: REPORT_TIMEOUT_MS,
  createTimeoutMs: config.createTimeout,
  actionTimeoutMs: ACTION_TIMEOUT_MS,
  wakeTimeoutMs: config.wakeTimeout,
  leaseTtlMs: config.leaseTtl,
  bootTimeMs: config.bootTime,
});

function freeLocalId(taken: ReadonlySet<string>): string {
  return localHostIds(taken.size + 1).find((instanceId) => !taken.has(instanceId)) ?? "local-1";
}
