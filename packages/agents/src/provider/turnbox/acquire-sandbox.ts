import { hasReason, type Sandbox, SandboxError, type SandboxInfo } from "@turnbox/client";
import type { PrepareRequest, ProviderCall } from "../provider.ts";
import { IDENTITY_LABELS, identityLabels, runtimeLabels } from "../session/identity-labels.ts";
import type { HeldSandboxes } from "./held-sandboxes.ts";
import type { SandboxDefaults } from "./sandbox-source.ts";

export interface Acquired {
  readonly sandbox: Sandbox;
  readonly info: SandboxInfo;
}

/** The sandbox of a request: the one it had, else the one that carries its labels, else a new one. It is active then. */
export async function acquireSandbox(
  source: HeldSandboxes,
  request: PrepareRequest,
  { defaults, env, ...call }: ProviderCall & AcquireOptions,
): Promise<Acquired> {
  const there =
    (await knownSandbox(source, request, call)) ?? (await labelledSandbox(source, identityLabels(request), call));
  if (there !== undefined) {
    const acquired = await bringUp(there, call);
    await there.sandbox.network.update(request.sandbox.network, call);
    return acquired;
  }
  const sandbox = await source.create({
    ...defaults,
    labels: runtimeLabels(request),
    env,
    network: request.sandbox.network,
    // Asking again, also after a crash, is the same call.
    idempotencyKey: `provider-${request.sandboxId}`,
    ...call,
  });
  return { sandbox, info: await sandbox.info(call) };
}

export interface AcquireOptions {
  readonly defaults: SandboxDefaults;
  readonly env: Readonly<Record<string, string>>;
}

/** The sandbox of an id; undefined if it is gone or going. */
export async function sandboxOf(source: HeldSandboxes, id: string, call: ProviderCall): Promise<Acquired | undefined> {
  try {
    const sandbox = await source.get(id, call);
    const info = await sandbox.info(call);
    if (info.state !== "destroying") return { sandbox, info };
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  await source.forget(id);
  return undefined;
}

export const isGone = (thrown: unknown): boolean =>
  hasReason(thrown, "SANDBOX_NOT_FOUND", "SESSION_NOT_FOUND", "INSTANCE_NOT_FOUND", "SESSION_DESTROYING");

/** The one the session had, unless its labels say that it is another's. */
async function knownSandbox(
  source: HeldSandboxes,
  request: PrepareRequest,
  call: ProviderCall,
): Promise<Acquired | undefined> {
  if (request.instanceId === "") return undefined;
  const known = await sandboxOf(source, request.instanceId, call);
  return known?.info.labels[IDENTITY_LABELS.sandbox] === request.sandboxId ? known : undefined;
}

/**
 * The sandbox that carries the labels; undefined if there is none. Instances that do not answer may have it: then it
 * is not known, and nothing is made in its place.
 */
export async function labelledSandbox(
  source: HeldSandboxes,
  labels: Readonly<Record<string, string>>,
  call: ProviderCall,
): Promise<Acquired | undefined> {
  const { sandboxes, unreachableInstances } = await source.list({ labels, ...call });
  // One that is still being made is asked for under the key of its making.
  const usable = sandboxes.filter(({ state }) => state !== "destroying" && state !== "creating");
  const [oldest] = [...usable].sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
  if (oldest !== undefined) return await sandboxOf(source, oldest.id, call);
  if (unreachableInstances.length === 0) return undefined;
  throw new SandboxError("PROVIDER_UNAVAILABLE", "instances that may have the sandbox do not answer", {
    metadata: { instances: unreachableInstances.join(", ") },
  });
}

/** Out of rest, or out of failure. */
async function bringUp({ sandbox, info }: Acquired, call: ProviderCall): Promise<Acquired> {
  if (info.state === "paused") return { sandbox, info: await sandbox.resume(call) };
  if (info.state === "failed") return { sandbox, info: await sandbox.repair(call) };
  return { sandbox, info };
}
