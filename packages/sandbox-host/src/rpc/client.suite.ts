import { type Client, createClient, createRouterTransport } from "@connectrpc/connect";
import type { DescService } from "@bufbuild/protobuf";
import { fromConnectError } from "@turnbox/rpc/wire";
import { type Secret, systemClock } from "@turnbox/core";
import { createRouterOptions } from "@turnbox/rpc/server";
import { createTestAccess, type TestAccess } from "@turnbox/core/testing";
import type { Fence } from "../cordon/fence.ts";
import { createFenceInterceptor } from "./fence-interceptor.ts";
import { createRoutes, type ServiceParts } from "./routes.ts";

/** Clients of a host, through its gate and its routes. */
export interface HostAccess {
  /** With the home's token unless another one is given. */
  client<Service extends DescService>(service: Service, token?: Secret): Client<Service>;
  readonly sign: TestAccess["sign"];
}

export function accessTo(host: ServiceParts & { readonly fence: Fence }): HostAccess {
  const access = createTestAccess({ clock: systemClock });
  const router = createRouterOptions({
    verifier: access.verifier,
    log: access.log,
    clock: systemClock,
    innerInterceptors: [createFenceInterceptor(host.fence)],
  });
  return {
    client: (service, token = access.homeToken) =>
      createClient(
        service,
        createRouterTransport(createRoutes(host), { router, transport: { interceptors: [access.bearer(token)] } }),
      ),
    sign: access.sign,
  };
}

/** The reason that a call was refused with; "none" if it was not. */
export const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "none",
    (thrown: unknown) => fromConnectError(thrown).reason,
  );
