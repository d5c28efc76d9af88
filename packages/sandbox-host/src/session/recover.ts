import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { IntentRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionInventory, Storage } from "../storage/storage.ts";
import type { SettleIntent } from "./intent.ts";
import type { Reaper } from "./reaper.ts";
import type { Registry } from "./registry.ts";
import { createSession, type Session } from "./session.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly reaper: Reaper;
  readonly settle: SettleIntent;
  readonly log: Logger;
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * What a start does before it serves: joins what is there (datasets, containers) with the records, ends containers that
 * belong to nobody, finishes or undoes what was cut off, and takes up removals again. Containers of living sessions stay;
 * what an earlier service ran in them and waited for is ended. Datasets without a record are reported, never destroyed.
 *
 * One session that cannot be brought back is marked as failed and holds up no other.
 */
export async function recoverSessions(deps: Deps, call: Call): Promise<void> {
  const { registry, records, storage, runtime, reaper, log } = deps;
  const [rows, intents, inventory] = await Promise.all([
    records.call("listSessions", null),
    records.call("listIntents", null),
    storage.inventory(call),
  ]);
  // A container holds its head: strays go first, or what they stand on could not be removed.
  const owned = new Set(rows.map(({ container }) => container));
  for (const id of await runtime.list(call)) {
    if (!owned.has(id))
      await attempt(log, "a container that belongs to nobody cannot be ended", () => runtime.stop(id, call));
  }
  for (const row of rows) {
    const session = createSession(row, records);
    registry.add(session);
    if (row.phase.kind === "creating")
      await session.commit((made) => ({ ...made, phase: { kind: "destroying", sinceMs: made.createdAtMs } }));
    if (session.row.phase.kind === "destroying") {
      session.lifetime.abort();
      session.gate.close("SESSION_DESTROYING");
      reaper.remove(session);
    } else {
      const found = inventory.find(({ token }) => token === row.token);
      await bringBack(deps, { session, found, intent: intents.find(({ token }) => token === row.token) }, call);
    }
  }
  for (const { token } of inventory) {
    if (!rows.some((row) => row.token === token)) {
      log.warn({ token }, "files of a session that has no record are left alone");
    }
  }
}

interface Returning {
  readonly session: Session;
  readonly found: SessionInventory | undefined;
  readonly intent: IntentRow | undefined;
}

async function bringBack(deps: Deps, { session, found, intent }: Returning, call: Call): Promise<void> {
  const { runtime, log } = deps;
  const { container, headGeneration } = session.row;
  try {
    if (!(found?.heads ?? []).some(({ generation }) => generation === headGeneration)) {
      throw new Error("the session's files are not in the storage");
    }
    if (intent !== undefined) await deps.settle(session, intent);
    if (container !== null) await runtime.quiesce(container, call);
  } catch (thrown) {
    session.leftover = intent ?? null;
    log.error({ err: thrown, sessionId: session.row.id }, "a session cannot be brought back");
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    await session.commit((row) => (row.phase.kind === "failed" ? row : { ...row, phase: { kind: "failed", message } }));
    return;
  }
  await unmountOldHeads(deps, { session, found }, call);
}

async function unmountOldHeads(
  { storage, log }: Deps,
  { session, found }: Omit<Returning, "intent">,
  call: Call,
): Promise<void> {
  const { token, headGeneration } = session.row;
  for (const { generation, mounted } of found?.heads ?? []) {
    if (mounted === "no" || generation === headGeneration) continue;
    await attempt(log, "an old head stays mounted", () => storage.unmountHead({ token, generation }, call));
  }
}

async function attempt(log: Logger, message: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (err) {
    log.error({ err }, message);
  }
}
