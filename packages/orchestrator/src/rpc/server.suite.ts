import { generateKeyPairSync } from "node:crypto";
import { type Client, createClient, createRouterTransport } from "@connectrpc/connect";
import {
  type AccessVerb,
  type Clock,
  createLog,
  createTokenSigner,
  createTokenVerifier,
  type Reason,
  Secret,
  systemClock,
} from "@turnbox/core";
import { fromConnectError } from "@turnbox/rpc/wire";
import { createRouterOptions } from "@turnbox/rpc/server";
import { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { createFakeSandboxControl } from "../control/fake/fake-sandbox-control.ts";
import type { FleetInstance } from "../fleet/fleet-view.ts";
import { createFakeFleet } from "./fake-fleet.suite.ts";
import { createRoutes } from "./routes.ts";

export const HOME_TOKEN = "home-token-home-token-home-token-home";

export const instance = (instanceId: string, changes: Partial<FleetInstance> = {}): FleetInstance => ({
  instanceId,
  state: "ready",
  drainReason: undefined,
  cordoned: false,
  url: `http://${instanceId}:9100`,
  labels: {},
  image: "",
  launchedAtMs: 1000,
  health: "healthy",
  sessionCount: 0,
  maxSessions: 10,
  poolAvailableBytes: 5,
  message: "",
  ...changes,
});

/** The services in memory, behind the policy of a server, over a fake control and a fake fleet. */
export function createServer(instances: readonly FleetInstance[] = [], clock: Clock = systemClock) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const signer = createTokenSigner({ privateKey, issuer: "f1", clock });
  const verifier = createTokenVerifier({
    publicKeys: [publicKey],
    homeToken: new Secret(HOME_TOKEN),
    issuer: "f1",
    clock,
  });
  const control = createFakeSandboxControl({ clock });
  const log = createLog({ name: "test", level: "silent", to: { write: () => undefined } });
  const fleet = createFakeFleet(instances);
  const routes = createRoutes({
    control,
    signer,
    fleet,
    operations: fleet,
    waitingCreates: () => Promise.resolve(fleet.waitingCreates),
    clock,
    version: "1.2.3",
  });
  const transport = (token: string) =>
    createRouterTransport(routes, {
      router: createRouterOptions({ verifier, log, clock }),
      transport: {
        interceptors: [
          (next) => (request) => {
            if (token !== "") request.header.set("authorization", `Bearer ${token}`);
            return next(request);
          },
        ],
      },
    });
  const tokenOf = (
    tenant: string,
    more: { readonly sandbox?: string; readonly verbs?: readonly AccessVerb[]; readonly lifetimeMs?: number } = {},
  ): string =>
    signer.sign({ tenant, verbs: ["read", "lifecycle", "execute"], lifetimeMs: 60_000, ...more }).token.reveal();
  return {
    control,
    fleet,
    verifier,
    tokenOf,
    sandboxes: (token = HOME_TOKEN): Client<typeof SandboxControlService> =>
      createClient(SandboxControlService, transport(token)),
    fleets: (token = HOME_TOKEN): Client<typeof FleetService> => createClient(FleetService, transport(token)),
  };
}

export const refusal = async (
  work: Promise<unknown>,
): Promise<{ reason: Reason; field: string | undefined; message: string }> => {
  try {
    await work;
  } catch (thrown) {
    const { reason, metadata, message } = fromConnectError(thrown);
    return { reason, field: metadata["field"], message };
  }
  throw new Error("nothing was refused");
};
