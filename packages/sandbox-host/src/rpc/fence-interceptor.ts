import type { Interceptor } from "@connectrpc/connect";
import { ANY_TENANT, invalidArgument, SandboxError } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import type { Fence } from "../cordon/fence.ts";

/** The header that names the epoch of the leader in its commands. */
export const EPOCH_HEADER = "turnbox-fleet-epoch";

/**
 * Refuses commands of an earlier leader before anything happens. A call without the header is no command and passes.
 * Only the fleet itself and the home may send it: an epoch of another caller could keep the true leader out.
 */
export function createFenceInterceptor(fence: Fence): Interceptor {
  return (next) => async (request) => {
    const epoch = parseEpoch(request.header.get(EPOCH_HEADER));
    if (epoch !== undefined) {
      const { kind, tenant, sandbox, verbs } = principalOf({ values: request.contextValues });
      const leads = tenant === ANY_TENANT && sandbox === undefined && verbs.includes("admin");
      if (kind !== "home" && !leads)
        throw new SandboxError("PERMISSION_DENIED", `the token does not allow the header ${EPOCH_HEADER}`);
      await fence.pass(epoch);
    }
    return await next(request);
  };
}

/** The epoch of a command; undefined without the header. */
export function parseEpoch(value: string | null): number | undefined {
  if (value === null) return undefined;
  const epoch = /^[1-9]\d{0,15}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(epoch)) throw invalidArgument(EPOCH_HEADER, "must be a whole number from 1 on");
  return epoch;
}
