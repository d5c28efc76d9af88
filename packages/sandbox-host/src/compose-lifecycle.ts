import { raceTime } from "@turnbox/core";
import type { Assembly } from "./assembly.ts";
import { type BaseParts, SETTLE_MS } from "./compose-base.ts";
import type { RecoveryParts } from "./compose-recovery.ts";
import type { SessionParts } from "./compose-sessions.ts";
import { createSessionUseCase } from "./lifecycle/create.ts";
import { createDestroyOnRequest, createDestroySession } from "./lifecycle/destroy.ts";
import { Expiry } from "./lifecycle/expire.ts";
import { createExtendSession } from "./lifecycle/extend.ts";
import { Maker } from "./lifecycle/make.ts";
import { createPauseSession, createResumeSession } from "./lifecycle/pause.ts";
import { createRepairSession } from "./lifecycle/repair.ts";
import { createUpdateNetworkPolicy } from "./lifecycle/update-network-policy.ts";
import { SessionUsage } from "./session/session-usage.ts";
import { createSpace } from "./session/space.ts";
import { createRemoveTemplate } from "./warm/remove-template.ts";
import { startWarmPool } from "./warm/start-pool.ts";

/** How sessions come to be, change and end, with the pool of those that are made before they are wanted. */
export async function composeLifecycle(
  parts: BaseParts & SessionParts & RecoveryParts,
  assembly: Assembly,
  call: { readonly signal: AbortSignal },
) {
  const { clock, config, boot } = parts;
  const destroySession = createDestroySession(parts);
  const space = createSpace(parts);
  const maker = new Maker({ ...parts, space, destroySession });
  const warm = startWarmPool({ ...parts, maker, left: parts.ready, bootId: boot.bootId }, call);
  assembly.defer("warm sessions", async (ending) => {
    if (ending === "stopped") await raceTime(warm[Symbol.asyncDispose](), { clock, atMostMs: SETTLE_MS });
    else await warm.abandon();
  });
  const pauseSession = createPauseSession(parts);
  const drainTimeoutMs = config.pauseDrainTimeout;
  const expiry = new Expiry({ ...parts, pauseSession, destroySession, drainTimeoutMs });
  await expiry.load();
  return {
    maker,
    warm,
    expiry,
    usage: new SessionUsage({ ...parts, space }),
    createSession: createSessionUseCase({ ...parts, maker, warm }),
    destroySession,
    destroyOnRequest: createDestroyOnRequest({ ...parts, destroySession }),
    pauseSession,
    resumeSession: createResumeSession(parts),
    extendSession: createExtendSession(parts),
    repairSession: createRepairSession(parts),
    updateNetworkPolicy: createUpdateNetworkPolicy(parts),
    removeTemplate: createRemoveTemplate({ ...parts, warm }),
  };
}

export type LifecycleParts = Awaited<ReturnType<typeof composeLifecycle>>;
