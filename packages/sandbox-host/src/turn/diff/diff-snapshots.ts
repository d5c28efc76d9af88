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
import { type Answer, createAnswers } from "./answers.ts";
import { commonPastMs } from "./common-past.ts";
import { createCompareInChild, type SizedChange } from "./compare-in-child.ts";
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
 * answer is kept for a minute, so that its pages are pages of one thing also where the session goes on.
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

interface Deps {
  readonly storage: Storage;
  readonly records: Records;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
  /** The program that runs the comparing process. */
  readonly nodePath: string;
  readonly limits?: Partial<DiffLimits>;
}

const LIMITS: DiffLimits = { deadlineMs: 60_000, maxEntries: 1_000_000, maxChanges: 250_000 };
const MAX_PATH_BYTES = 64 * 1024 * 1024;
const TEXT_LIMITS = { maxFiles: 2000, maxFileBytes: 1024 * 1024 };
/** Text is left out rather than that the comparison fails because of it. */
const TEXT_SHARE = 0.5;
/** Each is two mounts and a process, and the storage has a bound on views. */
const AT_ONCE = { count: 7, maxWaiting: 256 };

export function createDiffSnapshots(deps: Deps): DiffSnapshots {
  const { storage, records, clock } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const compare = createCompareInChild(deps);
  const answers = createAnswers(clock);
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
    const known = findKnown(question, points, request);
    if (known !== null) return known;
    const release = await semaphore.acquire(shareKeyOf(session), call.signal);
    try {
      const changes = points.from.name === points.to?.name ? [] : await look(session, points, request, call);
      const answer = { id: points.to === null ? randomToken(16) : idOf(question), question, changes };
      answers.keep(answer);
      return answer;
    } finally {
      release();
    }
  };

  /** Throws where a page is asked for that belongs to another question, or to an answer that cannot be given again. */
  function findKnown(question: string, { to }: Points, { answerId }: DiffRequest): Answer | null {
    const id = to === null ? answerId : idOf(question);
    if (answerId !== null && answerId !== id) throw tokenRefused();
    const known = id === null ? null : answers.find(id, question);
    if (known === null && to === null && id !== null) throw tokenRefused();
    return known;
  }

  async function look(
    session: Session,
    { from, to }: Points,
    request: DiffRequest,
    call: { readonly signal: AbortSignal },
  ): Promise<readonly SizedChange[]> {
    const startedMs = clock.monotonicMs();
    await using fromView = await storage.openView({ kind: "snapshot", snapshot: refOf(from) }, call);
    const opened =
      to === null
        ? await openNow(session, call)
        : { view: await storage.openView({ kind: "snapshot", snapshot: refOf(to) }, call), parent: to.id };
    await using toView = opened.view;
    const candidates = await storage.changedPaths(fromView.snapshot, toView.snapshot, call);
    const rows = await records.call("listSnapshots", session.row.token);
    const pastMs = commonPastMs(rows, { from: from.id, to: opened.parent }, session.row.createdAtMs);
    const leftMs = Math.max(1, Math.floor(limits.deadlineMs - (clock.monotonicMs() - startedMs)));
    const job: DiffJob = {
      from: fromView.path,
      to: toView.path,
      path: request.path,
      candidates,
      commonUntilSecond: Math.floor(pastMs / 1000),
      maxEntries: limits.maxEntries,
      maxChanges: limits.maxChanges,
      maxPathBytes: MAX_PATH_BYTES,
      deadlineMs: leftMs,
      text:
        request.text === null
          ? null
          : { ...TEXT_LIMITS, maxBytes: request.text.maxBytes, budgetMs: Math.floor(leftMs * TEXT_SHARE) },
    };
    const changes = await compare(job, call);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    deps.log.debug({ sessionId: session.row.id, changes: changes.length, durationMs }, "two points were compared");
    return changes;
  }

  /** In the order of what changes the session: neither a rollback nor a removal is half-way then. */
  function openNow(
    session: Session,
    call: { readonly signal: AbortSignal },
  ): Promise<{ readonly view: View; readonly parent: string | null }> {
    return inOrder(session, "DiffSnapshots", async () => {
      assertReadable(session);
      const view = await storage.openView({ kind: "head", head: session.head }, call);
      return { view, parent: session.row.parentSnapshot };
    });
  }
}

interface Points {
  readonly from: SnapshotRow;
  /** Null means now. */
  readonly to: SnapshotRow | null;
}

function refOf({ token, name }: SnapshotRow): { readonly token: string; readonly name: string } {
  return { token, name };
}

/** Throws unless the session has files that nobody is making or removing. */
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
