import { type Clock, runEvery } from "@turnbox/core";
import type { Logger } from "pino";
import { DENY_ALL } from "../network-policy/policy.ts";
import type { Network } from "../network/network.ts";
import type { Registry } from "../session/registry.ts";
import { createDenialLog } from "./denial-log.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** Gives the network the policies of containers that an earlier service booted. Until then their old rules hold. */
export async function adoptNetworks(
  { registry, network, log }: { readonly registry: Registry; readonly network: Network; readonly log: Logger },
  call: Call,
): Promise<void> {
  for (const { row } of registry.all()) {
    if (row.container === null || !network.isAttached(row.container)) continue;
    try {
      await network.update(row.container, row.networkPolicy ?? DENY_ALL, call);
    } catch (err) {
      log.error({ err, sessionId: row.id }, "network of a session not taken up, its old rules hold");
    }
  }
}

const MEND_EVERY_MS = 5_000;

/** Looks until disposed whether the rules are still there, and logs what they refused. */
export function watchNetwork(deps: {
  readonly registry: Registry;
  readonly network: Network;
  readonly clock: Clock;
  readonly log: Logger;
}): AsyncDisposable {
  const { network, clock, log } = deps;
  const stop = new AbortController();
  const { signal } = stop;
  const logDenials = createDenialLog(deps);
  const look = async (): Promise<void> => {
    await network.mend({ signal });
    await logDenials({ signal });
  };
  const watching = runEvery(look, {
    clock,
    intervalMs: MEND_EVERY_MS,
    signal,
    onFailure: (err) => {
      log.error({ err }, "network of sandboxes not checked");
    },
  });
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await watching;
    },
  };
}
