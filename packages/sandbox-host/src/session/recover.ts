import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { IntentRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionInventory, Storage } from "../storage/storage.ts";
import type { SessionEvents } from "./events.ts";
import { inParallel } from "./in-parallel.ts";
import type { SettleIntent } from "./intent.ts";
import type { Reaper } from "./reaper.ts";
import type { Registry } from "./registry.ts";
import { createSession, type Session } from "./session.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly events: SessionEvents;
  readonly reaper: Reaper;
  readonly settle: SettleIntent;
  readonly log: Logger;
}

interface Call {
  readonly signal: AbortSignal;
}

export interface Recovery {
  /** Tokens of sessions that the storage has and nobody knows of. They are left alone. */
  readonly quarantined: readonly string[];
}

/** How many sessions are looked after at once. */
const LANES = 8;

/**
 * What a start does before it serves: joins what is there (datasets, containers) with the records, ends containers that
 * belong to nobody, finishes or undoes what was cut off, and takes up removals again. Containers of living sessions stay;
 * what an earlier service ran in them and waited for is ended. Datasets without a record are reported, never destroyed.
 *
 * One session that cannot be brought back is marked as failed and holds up no other. One that has neither a container nor
 * an unfinished operation costs no look at the machine.
 */
export async function recoverSessions(deps: Deps, call: Call): Promise<Recovery> {
  const { registry, records, storage, runtime, log } = deps;
  const [rows, intents, husks, inventory] = await Promise.all([
    records.call("listSessions", null),
    records.call("listIntents", null),
    records.call("listHusks", null),
    storage.inventory(call),
  ]);
  // A container holds its head: strays go first, or what they stand on could not be removed.
  const owned = new Set(rows.map(({ container }) => container));
  const strays = (await runtime.list(call)).filter((id) => !owned.has(id));
  await inParallel(strays, LANES, (id) =>
    attempt(log, "a container that belongs to nobody cannot be ended", () => runtime.stop(id, call)),
  );
  const foundByToken = new Map(inventory.map((found) => [found.token, found]));
  const intentByToken = new Map(intents.map((intent) => [intent.token, intent]));
  const sessions = rows.map((row) => createSession(row, deps));
  for (const session of sessions) registry.add(session);
  await inParallel(sessions, LANES, async (session) => {
    const { token } = session.row;
    await takeUp(deps, { session, found: foundByToken.get(token), intent: intentByToken.get(token) }, call);
  });
  const known = new Set([...rows, ...husks].map(({ token }) => token));
  const quarantined = inventory.map(({ token }) => token).filter((token) => !known.has(token));
  for (const token of quarantined) log.warn({ token }, "files of a session that has no record are left alone");
  return { quarantined };
}

interface Returning {
  readonly session: Session;
  readonly found: SessionInventory | undefined;
  readonly intent: IntentRow | undefined;
}

async function takeUp(deps: Deps, returning: Returning, call: Call): Promise<void> {
  const { session } = returning;
  if (session.row.phase.kind === "creating")
    await session.commit((made) => ({ ...made, phase: { kind: "destroying", sinceMs: made.createdAtMs } }));
  if (session.row.phase.kind === "destroying") {
    session.lifetime.abort();
    session.gate.close("SESSION_DESTROYING");
    deps.reaper.remove(session);
    return;
  }
  await bringBack(deps, returning, call);
  await reportMissingSnapshots(deps, returning);
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

/** A snapshot that is gone takes nothing with it: its row stays, so that nobody is told that it never was. */
async function reportMissingSnapshots({ records, log }: Deps, { session, found }: Returning): Promise<void> {
  const { id: sessionId, token } = session.row;
  const there = new Set(found?.snapshots);
  const rows = await records.call("listSnapshots", token);
  const missing = rows.filter(({ name }) => !there.has(name)).map(({ name }) => name);
  if (missing.length > 0) log.error({ sessionId, missing }, "snapshots are not in the storage");
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
