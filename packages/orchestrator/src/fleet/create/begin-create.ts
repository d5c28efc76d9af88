import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { ControlCall } from "../../control/sandbox-control.ts";
import type { CreateBegin, CreateBegun, SandboxRow, Store } from "../../store/store.ts";
import { formatFleetId } from "../fleet-id.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { CreateWish } from "./create-attempt.ts";

export interface BeginCreateOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly clock: Clock;
}

export interface NewCreate {
  readonly wish: CreateWish;
  /** Of the sandbox, unless its key was begun before. */
  readonly sessionId: string;
  /** Absent if the request has no key. */
  readonly key?: CreateBegin["key"];
  /** The instance that is asked first; absent if none has room at this moment. */
  readonly instanceId?: string;
}

/**
 * Puts the key and the row of a create on record. A name that is taken is `SANDBOX_EXISTS`, unless the host of the sandbox
 * that has it says that it is gone (expired, or removed behind the fleet's back): then the name is freed.
 */
export async function beginCreate(
  options: BeginCreateOptions,
  { wish, sessionId, key, instanceId }: NewCreate,
): Promise<Exclude<CreateBegun, { readonly kind: "name_taken" }>> {
  const { store, clock } = options;
  const { request, call } = wish;
  const row: SandboxRow = {
    sessionId,
    tenant: call.tenant,
    name: request.name,
    labels: request.labels,
    instanceId,
    phase: "creating",
    createdAtMs: clock.nowMs(),
  };
  const begin = { row, ...(key === undefined ? {} : { key }) };
  let begun = await store.beginCreate(begin, call);
  if (begun.kind === "name_taken" && (await isGone(options, begun.by, call))) {
    await store.deleteSandbox(begun.by.sessionId, call);
    begun = await store.beginCreate(begin, call);
  }
  if (begun.kind === "name_taken") throw sandboxExists(begun.by);
  return begun;
}

async function isGone({ registry }: BeginCreateOptions, row: SandboxRow, call: ControlCall): Promise<boolean> {
  if (row.instanceId === undefined || row.phase === "creating") return false;
  try {
    const { session } = await registry.connection(row.instanceId).getSandbox({ sandboxId: row.sessionId }, call);
    return session.state === "destroying";
  } catch (error) {
    return hasReason(error, "SANDBOX_NOT_FOUND", "INSTANCE_NOT_FOUND");
  }
}

function sandboxExists({ name = "", instanceId, sessionId }: SandboxRow): SandboxError {
  const sandboxId = instanceId === undefined ? {} : { sandboxId: formatFleetId({ instanceId, sessionId }) };
  return new SandboxError("SANDBOX_EXISTS", `name: a sandbox named ${JSON.stringify(name)} exists`, {
    metadata: { name, ...sandboxId },
  });
}
