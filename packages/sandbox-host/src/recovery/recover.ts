import { type Clock, hasReason, mapConcurrent } from "@turnbox/core";
import type { Logger } from "pino";
import type { Removals } from "../lifecycle/remove.ts";
import type { Records } from "../record/records.ts";
import type { IntentRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionEvents } from "../session/events.ts";
import type { SettleIntent } from "../session/intent.ts";
import type { Registry } from "../session/registry.ts";
import { createSession, type Session } from "../session/session.ts";
import type { SessionPresence, Storage } from "../storage/storage.ts";
import { isReady, type WarmMember } from "../warm/member.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly events: SessionEvents;
  readonly removals: Pick<Removals, "remove">;
  readonly settle: SettleIntent;
  /** Which boot of the machine this is. */
  readonly bootId: string;
  /** Settles when the service is about to serve; the long listing of the storage waits for that. */
  readonly composed: Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Call {
  readonly signal: AbortSignal;
}

export interface Recovery {
  /** Warm sessions of an earlier service, of this boot, on files that are not lost. They are in no listing. */
  readonly ready: readonly WarmMember[];
  /** Settles when everything that an earlier service left is settled. Never rejects. */
  readonly done: Promise<Recovered>;
}

export interface Recovered {
  /** Tokens of sessions that the storage has and the records do not. They are left alone. */
  readonly quarantined: readonly string[];
}

/** How many sessions are brought back at once. */
const LANES = 8;

/**
 * What a start does: joins what is there (datasets, containers) with the records, ends containers without an owner,
 * finishes or undoes what was cut off, and takes up removals again. Containers of living sessions stay; what an earlier
 * service ran in them and waited for is ended. Datasets without a record are reported, never destroyed. Warm sessions are
 * left to the pool.
 *
 * It returns when all sessions are known, from the records alone, so that they can be served; the rest goes on behind
 * it. What was cut off in a session is ended before anything else in its serial order, and its tools wait for that and
 * for the end of what ran in its container. One session that cannot be brought back is marked as failed and holds up no
 * other.
 */
export async function recoverSessions(deps: Deps, call: Call): Promise<Recovery> {
  const { registry, records, clock } = deps;
  const startedMs = clock.nowMs();
  const [rows, intents, lostHeads] = await Promise.all([
    records.call("listSessions", null),
    records.call("listIntents", null),
    records.call("listLostHeads", null),
  ]);
  const intentByToken = new Map(intents.map((intent) => [intent.token, intent]));
  const lost = new Set(lostHeads.map(({ token }) => token));
  const returning: Returning[] = [];
  const ready: WarmMember[] = [];
  for (const row of rows) {
    if (isReady(row, deps.bootId) && !lost.has(row.token)) {
      ready.push(row);
      continue;
    }
    const session = createSession(row, deps);
    registry.add(session);
    if (row.phase.kind === "creating")
      await session.commit((made) => ({ ...made, phase: { kind: "destroying", sinceMs: made.createdAtMs } }));
    if (session.row.phase.kind === "destroying") {
      session.lifetime.abort();
      session.gate.close("SESSION_DESTROYING");
    } else {
      returning.push(queueReturn(deps, { session, intent: intentByToken.get(row.token) }, call));
    }
  }
  return { ready, done: finish(deps, { returning, startedMs }, call) };
}

/** A session that is brought back when its turn comes; until then it waits at the head of its serial order. */
interface Returning {
  readonly session: Session;
  readonly begin: () => Promise<void>;
}

function queueReturn(
  deps: Deps,
  { session, intent }: { readonly session: Session; readonly intent: IntentRow | undefined },
  call: Call,
): Returning {
  const turn = Promise.withResolvers<undefined>();
  // What was cut off may have left files and container half-way.
  const closed = intent === undefined ? undefined : session.gate.close("ROLLBACK_IN_PROGRESS");
  const done = session.serial.run(async () => {
    await turn.promise;
    try {
      await bringBack(deps, { session, intent }, call);
    } finally {
      closed?.[Symbol.dispose]();
    }
  });
  session.returned = done.catch(() => undefined);
  return {
    session,
    begin: () => {
      turn.resolve(undefined);
      return done;
    },
  };
}

async function bringBack(
  deps: Deps,
  { session, intent }: { readonly session: Session; readonly intent: IntentRow | undefined },
  call: Call,
): Promise<void> {
  const { container } = session.row;
  try {
    if (intent !== undefined) await deps.settle(session, intent);
    if (container !== null) await deps.runtime.quiesce(container, call);
  } catch (thrown) {
    session.leftover = intent ?? null;
    await fail(deps, session, thrown);
  }
}

async function fail({ log }: Deps, session: Session, thrown: unknown): Promise<void> {
  log.error({ err: thrown, sessionId: session.row.id }, "session not brought back");
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const canFail = (kind: string): boolean => kind === "active" || kind === "paused";
  await session.commit((row) => (canFail(row.phase.kind) ? { ...row, phase: { kind: "failed", message } } : row));
}

async function finish(
  deps: Deps,
  { returning, startedMs }: { readonly returning: readonly Returning[]; readonly startedMs: number },
  call: Call,
): Promise<Recovered> {
  const { registry, log } = deps;
  // A container holds its head: those without an owner end first, or their heads could not be removed.
  await attempt(
    () => endUnowned(deps, call),
    (err) => {
      log.error({ err }, "containers without an owner not ended");
    },
  );
  for (const session of registry.all()) if (session.row.phase.kind === "destroying") deps.removals.remove(session);
  await mapConcurrent(returning, LANES, async ({ session, begin }) => {
    await attempt(begin, (err) => {
      log.error({ err, sessionId: session.row.id }, "session not brought back");
    });
  });
  let quarantined: readonly string[] = [];
  const sessions = returning.map(({ session }) => session);
  await attempt(
    async () => {
      quarantined = await compareWithStorage(deps, { sessions, startedMs }, call);
    },
    (err) => {
      log.error({ err }, "records and storage not compared");
    },
  );
  for (const token of quarantined) log.warn({ token }, "files of a session without a record left alone");
  return { quarantined };
}

/** Compares the sessions with their files. Returns the tokens of sessions that only the storage has. */
async function compareWithStorage(
  deps: Deps,
  { sessions, startedMs }: { readonly sessions: readonly Session[]; readonly startedMs: number },
  call: Call,
): Promise<readonly string[]> {
  await deps.composed;
  const present = await deps.storage.presence(call);
  const found = new Map(present.map((one) => [one.token, one]));
  await mapConcurrent(sessions, LANES, async (session) => {
    const compare = (): Promise<void> => compareSession(deps, { session, startedMs, found }, call);
    await attempt(
      () => session.serial.run(compare),
      (err) => {
        deps.log.error({ err, sessionId: session.row.id }, "session not compared with its files");
      },
    );
  });
  return await findUnknown(deps, present, call);
}

async function endUnowned({ records, runtime, registry, log }: Deps, call: Call): Promise<void> {
  const present = await runtime.list(call);
  // Read after the list: a container that was booted meanwhile has its record before it is there.
  const rows = [...(await records.call("listSessions", null)), ...registry.all().map(({ row }) => row)];
  const intents = await records.call("listIntents", null);
  const owned = new Set<string | null>([
    ...rows.map(({ container }) => container),
    ...intents.map((intent) => (intent.kind === "rollback" ? intent.container : null)),
  ]);
  const unowned = present.filter((id) => !owned.has(id));
  await mapConcurrent(unowned, LANES, (container) =>
    attempt(
      () => runtime.stop(container, call),
      (err) => {
        log.error({ err, container }, "container without an owner not ended");
      },
    ),
  );
}

/** Compares what the storage has of a session with what the session needs. It may have gone on since the storage was read. */
async function compareSession(
  deps: Deps,
  {
    session,
    startedMs,
    found,
  }: {
    readonly session: Session;
    readonly startedMs: number;
    readonly found: ReadonlyMap<string, SessionPresence>;
  },
  call: Call,
): Promise<void> {
  const { storage, records, log } = deps;
  const { row } = session;
  if (row.phase.kind === "destroying") return;
  const stored = found.get(row.token);
  const heads = stored?.heads ?? [];
  if (!heads.some(({ generation }) => generation === row.headGeneration)) await assertHead(deps, session, call);
  for (const { token, generation, mounted } of heads) {
    if (mounted === "no" || generation === session.row.headGeneration) continue;
    await attempt(
      () => storage.unmountHead({ token, generation }, call),
      (err) => {
        // A head that is gone was removed with what was cut off.
        if (!hasReason(err, "SESSION_NOT_FOUND")) log.error({ err, sessionId: row.id }, "old head not unmounted");
      },
    );
  }
  // The row of a snapshot that is gone stays, so that callers do not learn that it never was.
  const there = new Set(stored?.snapshots);
  const missing = (await records.call("listSnapshots", row.token))
    .filter(({ name, createdAtMs }) => createdAtMs <= startedMs && !there.has(name))
    .map(({ name }) => name);
  if (missing.length > 0) log.error({ sessionId: row.id, missing }, "snapshots missing in the storage");
}

async function assertHead(deps: Deps, session: Session, call: Call): Promise<void> {
  try {
    await deps.storage.headBytes(session.head, call);
  } catch (thrown) {
    if (!hasReason(thrown, "SESSION_NOT_FOUND")) throw thrown;
    await fail(deps, session, new Error("the session's files are not in the storage"));
  }
}

/** Sessions are made and removed meanwhile, so what seems unknown is checked a second time. */
async function findUnknown(
  { records, storage, registry }: Deps,
  present: readonly SessionPresence[],
  call: Call,
): Promise<readonly string[]> {
  const [rows, husks] = await Promise.all([records.call("listSessions", null), records.call("listHusks", null)]);
  const sessions = registry.all().map(({ row }) => row);
  const known = new Set([...rows, ...husks, ...sessions].map(({ token }) => token));
  const unknown: string[] = [];
  for (const { token } of present) {
    if (known.has(token)) continue;
    const isThere = await storage.usedBytes(token, call).then(
      () => true,
      () => false,
    );
    if (isThere) unknown.push(token);
  }
  return unknown;
}

/** Does the work, and reports its failure instead of throwing it. */
async function attempt(work: () => Promise<void>, report: (err: unknown) => void): Promise<void> {
  try {
    await work();
  } catch (err) {
    report(err);
  }
}
