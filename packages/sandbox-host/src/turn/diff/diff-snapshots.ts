import { createHash } from "node:crypto";
import { type Clock, type CommandRunner, invalidArgument, randomToken, type SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../../record/records.ts";
import type { SnapshotRow } from "../../record/row.ts";
import { assertActive } from "../../session/phase.ts";
import { inOrder, type Session, shareKeyOf, within } from "../../session/session.ts";
import { FairSemaphore } from "../../share/fair-semaphore.ts";
import type { Storage } from "../../storage/storage.ts";
import type { View } from "../../storage/views.ts";
import { findSnapshot } from "../find.ts";
import { assertSnapshots } from "../snapshot.ts";
import { type Answer, Answers } from "./answers.ts";
import { type CompareInChild, createCompareInChild, type SizedChange } from "./compare-in-child.ts";
import type { DiffJob } from "./job.ts";

export interface DiffRequest {
  readonly fromSnapshotId: string;
  /** Empty means the files as they are now. */
  readonly toSnapshotId: string;
  /** Absolute inside, without `.`, `..` and a slash at its end; "/" for everything. Itself and what is below it. */
  readonly path: string;
  readonly text: { readonly maxBytes: number } | null;
  /** The answer that a further page belongs to; null for the first page. */
  readonly answerId: string | null;
}

/**
 * What differs between two points of a session, ordered by path. Both points are looked up before anything is made. The
 * answer is kept for a minute, so that its pages are consistent even if the session changes.
 */
export type DiffSnapshots = (
  session: Session,
  request: DiffRequest,
  call: { readonly signal: AbortSignal },
) => Promise<Answer>;

export interface DiffLimits {
  readonly deadlineMs: number;
  readonly maxEntries: number;
  readonly maxChanges: number;
}

interface Parts {
  readonly storage: Storage;
  readonly records: Records;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
  /** The program that runs the comparing process. */
  readonly nodePath: string;
  /** Default 60 s, 1,000,000 entries and 250,000 changes. */
  readonly limits?: Partial<DiffLimits>;
}

const LIMITS: DiffLimits = { deadlineMs: 60_000, maxEntries: 1_000_000, maxChanges: 250_000 };
const MAX_PATH_BYTES = 64 * 1024 * 1024;
const TEXT_LIMITS = { maxFiles: 2000, maxFileBytes: 1024 * 1024 };
/** Text gets this share of the time, so that the comparison does not fail because of it. */
const TEXT_SHARE = 0.5;
/** Each is two mounts and a process, and the storage has a bound on views. */
const AT_ONCE = { count: 7, maxWaiting: 256 };

interface Call {
  readonly signal: AbortSignal;
}

export function createDiffSnapshots(parts: Parts): DiffSnapshots {
  const { storage, records } = parts;
  const compare = createCompareInChild(parts);
  const answers = new Answers(parts.clock);
  const semaphore = new FairSemaphore(AT_ONCE);

  return async (session, request, caller) => {
    assertSnapshots(storage);
    assertReadable(session);
    const call = within(session, caller);
    const points = {
      from: await findSnapshot(records, session, request.fromSnapshotId),
      to: request.toSnapshotId === "" ? null : await findSnapshot(records, session, request.toSnapshotId),
    };
    const question = questionOf(points, request);
    const known = findKnown(answers, question, points, request);
    if (known !== null) return known;
    const release = await semaphore.acquire(shareKeyOf(session), call.signal);
    try {
      const isSame = points.from.name === points.to?.name;
      const changes = isSame ? [] : await comparePoints({ ...parts, compare }, session, { points, request }, call);
      const answer = { id: points.to === null ? randomToken(16) : idOf(question), question, changes };
      answers.keep(answer);
      return answer;
    } finally {
      release();
    }
  };
}

/** Throws if a page is asked for that belongs to another question, or to an answer that is not kept any more. */
function findKnown(answers: Answers, question: string, { to }: Points, { answerId }: DiffRequest): Answer | null {
  const id = to === null ? answerId : idOf(question);
  if (answerId !== null && answerId !== id) throw tokenRefused();
  const known = id === null ? null : answers.find(id, question);
  if (known === null && to === null && id !== null) throw tokenRefused();
  return known;
}

async function comparePoints(
  { storage, records, clock, log, compare, limits }: Parts & { readonly compare: CompareInChild },
  session: Session,
  { points: { from, to }, request }: { readonly points: Points; readonly request: DiffRequest },
  call: Call,
): Promise<readonly SizedChange[]> {
  const { deadlineMs, maxEntries, maxChanges } = { ...LIMITS, ...limits };
  const startedMs = clock.monotonicMs();
  await using fromView = await storage.openView({ kind: "snapshot", snapshot: refOf(from) }, call);
  const opened =
    to === null
      ? await openNow(storage, session, call)
      : { view: await storage.openView({ kind: "snapshot", snapshot: refOf(to) }, call), parent: to.id };
  await using toView = opened.view;
  const candidates = await storage.changedPaths(fromView.snapshot, toView.snapshot, call);
  const rows = await records.call("listSnapshots", session.row.token);
  const pastMs = commonPastMs(rows, { from: from.id, to: opened.parent }, session.row.createdAtMs);
  const leftMs = Math.max(1, Math.floor(deadlineMs - (clock.monotonicMs() - startedMs)));
  const job: DiffJob = {
    from: fromView.path,
    to: toView.path,
    path: request.path,
    candidates,
    commonUntilSecond: Math.floor(pastMs / 1000),
    maxEntries,
    maxChanges,
    maxPathBytes: MAX_PATH_BYTES,
    deadlineMs: leftMs,
    text:
      request.text === null
        ? null
        : { ...TEXT_LIMITS, maxBytes: request.text.maxBytes, budgetMs: Math.floor(leftMs * TEXT_SHARE) },
  };
  const changes = await compare(job, call);
  const durationMs = Math.round(clock.monotonicMs() - startedMs);
  log.debug({ sessionId: session.row.id, changes: changes.length, durationMs }, "snapshots compared");
  return changes;
}

/** In the order of what changes the session: neither a rollback nor a removal is half-way then. */
function openNow(
  storage: Storage,
  session: Session,
  call: Call,
): Promise<{ readonly view: View; readonly parent: string | null }> {
  return inOrder(session, "DiffSnapshots", async () => {
    assertReadable(session);
    const view = await storage.openView({ kind: "head", head: session.head }, call);
    return { view, parent: session.row.parentSnapshot };
  });
}

/**
 * The time until which two points of a session have the same past: when the latest snapshot that both continue from was
 * taken, or else when the session was made. `null` is a point without a snapshot behind it.
 */
function commonPastMs(
  snapshots: readonly SnapshotRow[],
  points: { readonly from: string | null; readonly to: string | null },
  sessionCreatedAtMs: number,
): number {
  const byId = new Map(snapshots.map((row) => [row.id, row]));
  const ancestryOf = (id: string | null): readonly SnapshotRow[] => {
    const found: SnapshotRow[] = [];
    for (let row = byId.get(id ?? ""); row !== undefined && found.length < byId.size; row = byId.get(row.parent ?? ""))
      found.push(row);
    return found;
  };
  const behindFrom = new Set(ancestryOf(points.from));
  return ancestryOf(points.to).find((row) => behindFrom.has(row))?.createdAtMs ?? sessionCreatedAtMs;
}

interface Points {
  readonly from: SnapshotRow;
  /** Null means now. */
  readonly to: SnapshotRow | null;
}

function refOf({ token, name }: SnapshotRow): { readonly token: string; readonly name: string } {
  return { token, name };
}

/** Throws unless the session has files that are not being made or removed. */
function assertReadable({ row }: Session): void {
  if (row.phase.kind === "paused" || row.phase.kind === "failed") return;
  assertActive(row.phase, "DiffSnapshots");
}

function questionOf({ from, to }: Points, { path, text }: DiffRequest): string {
  return JSON.stringify([from.token, from.name, to?.name ?? null, path, text?.maxBytes ?? null]);
}

/** Two snapshots never change, so the same question has the same answer, also when it is worked out again. */
function idOf(question: string): string {
  return createHash("sha256").update(question).digest("hex").slice(0, 32);
}

function tokenRefused(): SandboxError {
  return invalidArgument("page.page_token", "must be of the same request and of an answer of the last minute");
}
