import { raceTime } from "@turnbox/core";
import type { Assembly } from "./assembly.ts";
import { type BaseParts, SETTLE_MS } from "./compose-base.ts";
import type { SessionParts } from "./compose-sessions.ts";
import type { HostOptions } from "./compose-options.ts";
import { surviveReboot } from "./recovery/reboot.ts";
import { recoverSessions } from "./recovery/recover.ts";
import { replaceLostContainers } from "./recovery/storage-watch.ts";
import { fillMini, MINI } from "./template/mini.ts";

type Call = { readonly signal: AbortSignal };

/**
 * Takes up the sessions of an earlier service, and makes the template that sessions have if they name none. The long look
 * at the storage begins with `serveNow`.
 */
export async function composeRecovery(
  options: HostOptions,
  parts: BaseParts & SessionParts,
  assembly: Assembly,
  call: Call,
) {
  const { registry, records, runner, clock, log, boot } = parts;
  const startedMs = clock.monotonicMs();
  const composing = Promise.withResolvers<undefined>();
  const serveNow = (): void => {
    composing.resolve(undefined);
  };
  const sources = options.miniSources ?? { busybox: "/bin/busybox", bash: "/bin/bash-static" };
  const building = parts.templates.build(MINI, (directory) => fillMini(directory, { sources, runner, ...call }), call);
  const recovering = recoverSessions({ ...parts, bootId: boot.bootId, composed: composing.promise }, call);
  // A start that fails does so when both have ended.
  await Promise.allSettled([recovering, building]);
  const { ready, done } = await recovering;
  const recovered = done.then(({ quarantined }) => {
    parts.health.quarantine(quarantined);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    log.info({ sessions: registry.size, durationMs }, "records and storage are reconciled");
  });
  assembly.defer("recovery", async (ending) => {
    serveNow();
    if (ending === "failed") await raceTime(recovered, { clock, atMostMs: SETTLE_MS });
  });
  await building;
  await replaceLostContainers(parts, await records.call("listLostHeads", null), call);
  await surviveReboot(parts, boot, call);
  return { ready, recovered, serveNow };
}

export type RecoveryParts = Awaited<ReturnType<typeof composeRecovery>>;
