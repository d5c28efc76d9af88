import { availableParallelism } from "node:os";
import { totalmem } from "node:os";
import { raceTime } from "@turnbox/core";
import type { Assembly } from "./assembly.ts";
import { type BaseParts, SETTLE_MS } from "./compose-base.ts";
import { createContainers } from "./container/container.ts";
import { createRecentMounts } from "./container/recent-mounts.ts";
import { createCordon } from "./cordon/cordon.ts";
import { createFence } from "./cordon/fence.ts";
import { DataSpace } from "./health/data-space.ts";
import { Health } from "./health/health.ts";
import { createHusks } from "./lifecycle/husk.ts";
import { Removals } from "./lifecycle/remove.ts";
import { sessionCeilings, sessionDefaults } from "./session-bounds.ts";
import { createIntents } from "./session/intent.ts";
import { ReceiptBounds } from "./session/receipt-bounds.ts";
import { createReceipts } from "./session/receipts.ts";
import { Uploads } from "./session/uploads.ts";
import { MAX_TEMPLATE_ENTRIES } from "./template/archive.ts";
import { Templates } from "./template/templates.ts";
import { createSettleIntent } from "./turn/settle.ts";

type Call = { readonly signal: AbortSignal };

/** What the use cases of sessions have in common, before any session is there. */
export async function composeSessions(base: BaseParts, assembly: Assembly, call: Call) {
  const { config, records, storage, runtime, log } = base;
  const receiving = composeReceipts(base);
  const recentMounts = createRecentMounts(base.clock);
  const containers = createContainers({ ...base, recentMounts });
  const husks = createHusks(base);
  await husks.load();
  const removals = assembly.use("removals", new Removals({ ...base, containers, husks }));
  ownOperations(assembly, base, containers);
  const templates = new Templates({
    ...base,
    limits: { maxBytes: config.maxTemplateSize, maxEntries: MAX_TEMPLATE_ENTRIES },
  });
  const dataSpace = new DataSpace({
    directory: base.dataDirectory,
    clock: base.clock,
    reserveBytes: config.dataReserve,
  });
  await dataSpace.look();
  const { poolSpaceWarnThreshold: warnThreshold, poolSpaceCritThreshold: critThreshold } = config;
  const health = new Health({ ...base, dataSpace, removals, husks, warnThreshold, critThreshold });
  const bounds = await composeBounds(base, call);
  const [cordon, fence] = await Promise.all([createCordon({ records }), createFence({ records })]);
  const settle = createSettleIntent({ records, storage, runtime, log });
  const intents = createIntents({ records, settle, log });
  const around = { containers, recentMounts, husks, removals, templates, dataSpace, health, cordon, fence };
  return {
    ...around,
    ...receiving,
    ...bounds,
    settle,
    intents,
    assertRoom: (wanted: Call) => health.assertRoom(wanted),
  };
}

export type SessionParts = Awaited<ReturnType<typeof composeSessions>>;

function composeReceipts({ config, records, clock, log }: BaseParts) {
  const receiptBounds = new ReceiptBounds({
    records,
    clock,
    log,
    session: { count: config.maxReceiptsPerSession, bytes: config.receiptSession },
    host: { count: config.maxReceiptsTotal, bytes: config.receiptTotal },
  });
  const receipts = createReceipts({ records, clock, bounds: receiptBounds });
  return { receiptBounds, receipts, uploads: new Uploads({ receipts, records }) };
}

async function composeBounds({ config, storage }: BaseParts, call: Call) {
  const { sizeBytes } = await storage.status(call).catch(() => ({ sizeBytes: 0 }));
  const machine = { cpus: availableParallelism(), memoryBytes: totalmem() };
  const ceilings = sessionCeilings(config, { ...machine, poolBytes: sizeBytes === 0 ? undefined : sizeBytes });
  return { ceilings, defaults: sessionDefaults(config, ceilings) };
}

/** A stop waits for operations under way, so that it is a clean one if they end in time. */
function ownOperations(
  assembly: Assembly,
  { registry, clock, stop }: BaseParts,
  containers: SessionParts["containers"],
): void {
  assembly.defer("operations", async (ending) => {
    if (ending !== "stopped") return;
    const idle = Promise.all(registry.all().map(({ serial }) => serial.idle()));
    if ((await raceTime(idle, { clock, atMostMs: SETTLE_MS })) === "ended") stop.operations = "ended";
    await raceTime(Promise.all(registry.all().map((session) => containers.settled(session))), {
      clock,
      atMostMs: SETTLE_MS,
    });
  });
}
