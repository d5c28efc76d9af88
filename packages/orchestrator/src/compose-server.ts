import { readFileSync } from "node:fs";
import type { TokenSigner, TokenVerifier } from "@turnbox/core";
import { createRpcMeter } from "@turnbox/rpc/metrics";
import {
  createHealthBoard,
  createRpcHandler,
  type ListeningServer,
  listen,
  registerReflection,
  serveMetrics,
} from "@turnbox/rpc/server";
import { NO_TRACING } from "@turnbox/rpc/trace";
import type { OrchestratorOptions } from "./orchestrator-options.ts";
import type { OrchestratorConfig } from "./config.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { FleetMetrics } from "./metrics/fleet-metrics.ts";
import type { MeteredPorts } from "./metrics/meter-ports.ts";
import { CONTROL_FILES, CONTROL_SERVICES, createRoutes } from "./rpc/routes.ts";
import { ORCHESTRATOR_VERSION } from "./version.ts";

export interface ServerParts {
  readonly fleet: Fleet;
  readonly signer: TokenSigner;
  readonly verifier: TokenVerifier;
  readonly metrics: FleetMetrics;
  readonly metered: MeteredPorts;
  readonly waitingCreates: (call: { readonly signal: AbortSignal }) => Promise<number>;
  readonly shutdownSignal: AbortSignal;
}

export interface ControlServer {
  readonly server: ListeningServer;
  setHealth(status: "serving" | "not_serving"): void;
}

/** Begins to listen. */
export async function composeServer(options: OrchestratorOptions, parts: ServerParts): Promise<ControlServer> {
  const { config, clock, log, tracing = NO_TRACING } = options;
  const { fleet, verifier, metrics } = parts;
  const board = createHealthBoard();
  const routes = createRoutes({
    ...parts,
    control: parts.metered.control(fleet.control),
    fleet: fleet.registry,
    operations: fleet.operations,
    clock,
    version: ORCHESTRATOR_VERSION,
  });
  const calls = createRpcHandler({
    verifier,
    log,
    clock,
    meter: createRpcMeter(metrics, clock),
    outerInterceptors: [tracing.server],
    shutdownSignal: parts.shutdownSignal,
    routes: (router) => {
      routes(router);
      board.register(router);
      registerReflection(router, CONTROL_FILES);
    },
  });
  const server = await listen({
    host: config.bindAddress,
    port: config.port,
    handler: serveMetrics(calls, { verifier, render: metrics.render }),
    keys: "present",
    drainMs: config.shutdownTimeout,
    ...tlsOf(config),
  });
  const setHealth: ControlServer["setHealth"] = (status) => {
    for (const service of ["", ...CONTROL_SERVICES]) board.set(service, status);
  };
  return { server, setHealth };
}

function tlsOf({ tlsCertificatePath, tlsKeyPath }: OrchestratorConfig) {
  if (tlsCertificatePath === null || tlsKeyPath === null) return {};
  return { tls: { certificate: readFileSync(tlsCertificatePath), privateKey: readFileSync(tlsKeyPath) } };
}
