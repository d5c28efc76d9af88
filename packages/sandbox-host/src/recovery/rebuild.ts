import type { Records } from "../record/records.ts";
import type { SessionRow, SnapshotRow, Timing } from "../record/row.ts";
import { readPolicyMarks } from "../session/policy-marks.ts";
import { LABEL_MARK, readHusk } from "../session/session-marks.ts";
import type { Marks, SessionInventory, SnapshotInfo, Storage } from "../storage/storage.ts";
import { fromSnapshotMarks } from "../turn/snapshot-marks.ts";

/** What a rebuild did with each session that the pool has. */
export interface Rebuilt {
  /** Sessions whose record was made again. */
  readonly rebuilt: readonly string[];
  /** Tokens of sessions whose marks do not say enough; they are left alone. */
  readonly unreadable: readonly string[];
}

/**
 * Makes the records of sessions that are in the pool and not in the records again, from the marks that their datasets
 * carry. What has a record is not touched. The environment is not in the marks and comes back empty; receipts and tool
 * calls are gone, so every rebuilt session begins a new generation, active, without a container.
 */
export async function rebuildRecords(
  { records, storage }: { readonly records: Records; readonly storage: Storage },
  call: { readonly signal: AbortSignal },
): Promise<Rebuilt> {
  const [rows, husks, inventory] = await Promise.all([
    records.call("listSessions", null),
    records.call("listHusks", null),
    storage.inventory(call),
  ]);
  const known = new Set([...rows, ...husks].map(({ token }) => token));
  const taken = new Set(rows.map(({ id }) => id));
  const rebuilt: string[] = [];
  const unreadable: string[] = [];
  let lastNumber = 0;
  for (const found of inventory) {
    for (const name of found.snapshots) lastNumber = Math.max(lastNumber, sequenceOf(name));
    if (known.has(found.token)) continue;
    const husk = readHusk(found.token, found.marks);
    if (husk !== undefined) {
      await records.call("becomeHusk", husk);
      continue;
    }
    const stored = storage.capabilities.snapshots === "supported" ? await storage.listSnapshots(found.token, call) : [];
    const { session, snapshots } = readSession(found, stored) ?? {};
    if (session === undefined || snapshots === undefined || taken.has(session.id)) {
      unreadable.push(found.token);
      continue;
    }
    taken.add(session.id);
    const head = await storage.mountHead({ token: session.token, generation: session.headGeneration }, call);
    const refquotaBytes = head.refquotaBytes ?? null;
    await records.call("restoreSession", { session: { ...session, refquotaBytes }, snapshots });
    rebuilt.push(session.id);
  }
  // Names of snapshots are never used twice, also not those that only the pool remembers.
  await records.call("raiseNumber", { name: "snapshot", atLeast: lastNumber });
  return { rebuilt, unreadable };
}

/** The session and its snapshots as the marks tell of them; undefined if they do not say enough. */
function readSession(
  { token, marks, heads }: SessionInventory,
  stored: readonly SnapshotInfo[],
): { readonly session: SessionRow; readonly snapshots: readonly SnapshotRow[] } | undefined {
  const identity = readIdentity(marks);
  const head = heads.toSorted((a, b) => a.generation - b.generation).at(-1);
  if (identity === undefined || head === undefined) return undefined;
  const snapshots = connect(stored.flatMap((info) => fromSnapshotMarks({ token, name: info.name }, info.marks) ?? []));
  const onHead = new Set(stored.filter((info) => info.generation === head.generation).map(({ name }) => name));
  const last =
    snapshots.findLast(({ name }) => onHead.has(name)) ?? snapshots.find(({ id }) => id === head.marks["target"]);
  const session: SessionRow = {
    ...identity,
    ...readSettings(marks),
    token,
    phase: { kind: "active" },
    generation: Math.max(head.generation, ...snapshots.map(({ generation }) => generation)) + 1,
    headGeneration: head.generation,
    env: {},
    refquotaBytes: null,
    container: null,
    turnCounter: Math.max(readNumber(marks["turn_counter"]) ?? 0, ...snapshots.map((row) => row.turnNumber ?? 0)),
    parentSnapshot: last?.id ?? null,
  };
  return { session, snapshots };
}

function readIdentity(marks: Marks): Pick<SessionRow, "id" | "tenant" | "base" | "createdAtMs"> | undefined {
  const { session_id: id, tenant } = marks;
  const [name, digest] = marks["base"]?.split("@") ?? [];
  if (id === undefined || tenant === undefined || name === undefined || digest === undefined) return undefined;
  return { id, tenant, base: { name, digest }, createdAtMs: readNumber(marks["created_at_ms"]) ?? 0 };
}

type Settings = Pick<
  SessionRow,
  "labels" | "limits" | "timing" | "ports" | "networkPolicy" | "exposures" | "forkedFrom" | "quotaBytes"
>;

function readSettings(marks: Marks): Settings {
  return {
    labels: labelsOf(marks),
    limits: parse(marks["limits"]) ?? {},
    timing: (parse(marks["timing"]) ?? NO_END) as Timing,
    ports: (parse(marks["ports"]) ?? []) as readonly number[],
    networkPolicy: readPolicyMarks(marks),
    exposures: [],
    forkedFrom: (parse(marks["forked_from"]) ?? null) as SessionRow["forkedFrom"],
    quotaBytes: readNumber(marks["quota_bytes"]),
  };
}

function readNumber(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

const NO_END: Timing = { ttlMs: null, expiresAtMs: null, idleTimeoutMs: null, onTimeout: "destroy" };

/** A snapshot whose parent is gone begins a tree of its own. */
function connect(snapshots: readonly SnapshotRow[]): readonly SnapshotRow[] {
  const ids = new Set(snapshots.map(({ id }) => id));
  return snapshots.map((row) => (row.parent === null || ids.has(row.parent) ? row : { ...row, parent: null }));
}

function labelsOf(marks: Marks): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(marks)
      .filter(([key]) => LABEL_MARK.test(key))
      .map(([, label]) => [label.slice(0, label.indexOf("=")), label.slice(label.indexOf("=") + 1)]),
  );
}

/** Undefined for what is not there and for what is not JSON. */
function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The number in a name that `nextSnapshotName` gave. */
function sequenceOf(name: string): number {
  const digits = /^s(\d+)$/.exec(name)?.[1];
  return digits === undefined ? 0 : Number(digits);
}
