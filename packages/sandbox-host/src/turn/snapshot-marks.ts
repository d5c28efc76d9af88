import type { SnapshotRow } from "../record/row.ts";
import type { Marks } from "../storage/storage.ts";

/** What lets a snapshot's record be rebuilt from the pool: a mark for each field that has a value. */
export function snapshotMarks(snapshot: SnapshotRow): Marks {
  const { id, kind, turnNumber, turnKey, outcome, title, toolCallId, createdAtMs, parent, generation } = snapshot;
  const marks = {
    id,
    kind,
    turn_number: turnNumber,
    turn_key: turnKey,
    outcome,
    title,
    tool_call_id: toolCallId,
    created_at_ms: createdAtMs,
    parent,
    generation,
  };
  return Object.fromEntries(
    Object.entries(marks).flatMap(([key, value]) => (value === null ? [] : [[key, String(value)]])),
  );
}

/** The record of a snapshot from its marks; undefined if they are not those of one. */
export function fromSnapshotMarks(
  { token, name }: Pick<SnapshotRow, "token" | "name">,
  marks: Marks,
): SnapshotRow | undefined {
  const { id, kind, outcome } = marks;
  if (id === undefined || !isKind(kind)) return undefined;
  const number = (text: string | undefined): number | null => (text === undefined ? null : Number(text));
  return {
    id,
    token,
    name,
    kind,
    turnNumber: number(marks["turn_number"]),
    turnKey: marks["turn_key"] ?? null,
    outcome: outcome === "failed" || outcome === "succeeded" ? outcome : null,
    title: marks["title"] ?? null,
    toolCallId: marks["tool_call_id"] ?? null,
    createdAtMs: number(marks["created_at_ms"]) ?? 0,
    parent: marks["parent"] ?? null,
    generation: number(marks["generation"]) ?? 1,
  };
}

function isKind(kind: string | undefined): kind is SnapshotRow["kind"] {
  return kind === "turn" || kind === "named" || kind === "tool" || kind === "undo";
}
