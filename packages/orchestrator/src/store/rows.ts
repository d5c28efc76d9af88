// Runs inside the SQLite store's thread too: only node's own modules and relative imports.
import type { LeaseState } from "./lease.ts";
import type { DrainPlan, InstanceRow, SandboxRow } from "./store.ts";

type Value = string | number | bigint | Uint8Array | null;

/** A row of a table, by its columns. Some drivers return large numbers as text. */
export type Row = Readonly<Record<string, Value>>;

const textOf = (value: Value | undefined): string | undefined =>
  value === null || value === undefined ? undefined : String(value);

export const toLease = (row: Row | undefined): LeaseState => ({
  epoch: Number(row?.["epoch"]),
  holder: textOf(row?.["holder"]),
  ttlMs: Number(row?.["ttl_ms"]),
  expiresAtMs: Number(row?.["expires_at_ms"]),
});

const drainOf = (text: string | undefined): DrainPlan | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as DrainPlan);

export const toInstance = (row: Row): InstanceRow => ({
  instanceId: String(row["instance_id"]),
  admission: row["admission"] === "cordoned" ? "cordoned" : "open",
  labels: JSON.parse(String(row["labels"])) as Record<string, string>,
  createdAtMs: Number(row["created_at_ms"]),
  image: String(row["image"]),
  drain: drainOf(textOf(row["drain"])),
  goal: String(row["goal"]) as InstanceRow["goal"],
  hasAnswered: row["ever_answered"] !== "no",
  version: Number(row["version"]),
});

export const toSandbox = (row: Row): SandboxRow => ({
  sessionId: String(row["session_id"]),
  tenant: String(row["tenant"]),
  name: textOf(row["name"]),
  labels: JSON.parse(String(row["labels"])) as Record<string, string>,
  instanceId: textOf(row["instance_id"]),
  phase: row["phase"] === "created" ? "created" : "creating",
  createdAtMs: Number(row["created_at_ms"]),
});
