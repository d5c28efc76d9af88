import { SandboxError } from "@turnbox/core";
import type { StorageStatus } from "../storage.ts";
import type { PoolGate } from "./pool-gate.ts";
import { readPoolStatus, unavailable } from "./pool.ts";
import type { ZfsPool } from "./zfs-pool.ts";

const NEVER = new AbortController().signal;

/**
 * Reads the status. Calls at the same time share one read, which goes on when a caller leaves: if something hangs, each
 * further read would leave one more child behind.
 */
export function createStatusProbe(
  find: () => { readonly pool: ZfsPool; readonly gate: PoolGate["state"] },
): (signal: AbortSignal) => Promise<StorageStatus> {
  let looking: Promise<StorageStatus> | undefined;
  return async (signal) => {
    const { pool, gate } = find();
    if (gate === "closed") return unavailable("being opened again");
    looking ??= look(pool).finally(() => {
      looking = undefined;
    });
    return await orTimeout(looking, signal);
  };
}

async function look(pool: ZfsPool): Promise<StorageStatus> {
  const { layout, mounts } = pool;
  const status = await readPoolStatus(pool, NEVER);
  // Without a daemon all mounts are dead, and it takes time to be sure of one.
  if (status.state === "unavailable") return status;
  const mounted = await mounts.dead(layout.mountRoot, NEVER).then(
    (dead) => (dead.length === 0 ? "well" : `${dead.length} mounts of a dead daemon`),
    (thrown: unknown) => SandboxError.from(thrown).message,
  );
  return mounted === "well" ? status : { ...status, state: "unavailable", detail: mounted };
}

/** A timeout of the caller means `unavailable`; any other end of its signal rejects. */
async function orTimeout(looking: Promise<StorageStatus>, signal: AbortSignal): Promise<StorageStatus> {
  const left = Promise.withResolvers<StorageStatus>();
  const onAbort = (): void => {
    const reason = SandboxError.from(signal.reason);
    if (reason.reason === "DEADLINE_EXCEEDED") left.resolve(unavailable("no answer"));
    else left.reject(reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([looking, left.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
