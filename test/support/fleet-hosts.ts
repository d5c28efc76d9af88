import { join } from "node:path";
import {
  createLog,
  createTokenSigner,
  loadOrCreateSigningKeys,
  newSessionId,
  openHome,
  systemClock,
} from "@turnbox/core";
import { createFleet, type Fleet } from "../../packages/orchestrator/src/fleet/fleet.ts";
import { fleetTags } from "../../packages/orchestrator/src/fleet/registry/fleet-tags.ts";
import { PHASES } from "../../packages/orchestrator/src/fleet/loop/phase-table.ts";
import type { HostConnection } from "../../packages/orchestrator/src/control/host-connection.ts";
import { createHostTokens } from "../../packages/orchestrator/src/host/host-tokens.ts";
import { createNodeSandboxControl } from "../../packages/orchestrator/src/host/node-sandbox-control.ts";
import { createStaticProvisioner } from "../../packages/orchestrator/src/provisioner/static/static-provisioner.ts";
import { createFakeStore } from "../../packages/orchestrator/src/store/fake/fake-store.ts";

/** Tokens as the orchestrator of a home signs them; of another fleet where an issuer is given. */
export function signerOf(home: string, issuer = openHome(home).id) {
  const { privateKey } = loadOrCreateSigningKeys(join(home, "keys"));
  return createTokenSigner({ privateKey, issuer, clock: systemClock });
}

/** A line to a host, as the orchestrator of its home has one. */
export function connectTo(host: { readonly url: string; readonly home: string }): HostConnection {
  const tokenFor = createHostTokens({ signer: signerOf(host.home), clock: systemClock });
  return createNodeSandboxControl({ url: host.url, tokenFor });
}

const NEVER = new AbortController().signal;

/** A fleet over hosts that run, in this process and without a control loop; `refresh` its registry for a look at them. */
export function createFleetOver(home: string, hosts: Readonly<Record<string, string>>): Fleet {
  const fleetId = openHome(home).id;
  const named = Object.entries(hosts).map(([instanceId, url]) => ({ instanceId, url }));
  return createFleet({
    fleetId,
    holder: "test",
    provisioner: createStaticProvisioner({ hosts: named, tags: fleetTags(fleetId), clock: systemClock }),
    store: createFakeStore({ clock: systemClock }),
    connectHost: (url) => connectTo({ url, home }),
    policy: {
      minInstances: 0,
      maxInstances: named.length,
      warmPoolTarget: 0,
      idleCooldownMs: 600_000,
      provisionTimeoutMs: 300_000,
      drainTimeoutMs: 1_800_000,
      maxConcurrentProvisions: 1,
      healthyThreshold: 1,
      unhealthyThreshold: 3,
      maxTerminateRetries: 5,
    },
    phases: PHASES,
    rules: { headroom: 0, maxCandidates: 5 },
    times: {
      intervalMs: 5000,
      reportTimeoutMs: 30_000,
      createTimeoutMs: 120_000,
      actionTimeoutMs: 60_000,
      wakeTimeoutMs: 60_000,
      leaseTtlMs: 15_000,
      bootTimeMs: 30_000,
    },
    maxWaitingCreates: 256,
    maxActionsAtOnce: 16,
    newInstanceId: () => "none",
    newSessionId,
    clock: systemClock,
    logger: createLog({ name: "test", level: "silent", to: "stderr" }),
    shutdown: NEVER,
  });
}
