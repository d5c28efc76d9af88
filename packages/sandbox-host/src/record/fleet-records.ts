import type { DatabaseSync } from "node:sqlite";

const EPOCH = "fleet_epoch";

/** What the host remembers of its fleet's commands, among the facts. */
export const ADMISSION = "fleet_admission";

export interface KeptAdmission {
  readonly admission: "open" | "closed";
  readonly epoch: number;
}

const keep = (db: DatabaseSync, name: string, value: string): void => {
  db.prepare(
    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  ).run(name, value);
};

export function raiseEpoch(db: DatabaseSync, epoch: number): number {
  const highest = Number(db.prepare("SELECT value FROM facts WHERE name = ?").get(EPOCH)?.["value"] ?? 0);
  if (epoch <= highest) return highest;
  keep(db, EPOCH, String(epoch));
  return epoch;
}

export function keepAdmission(db: DatabaseSync, { admission, epoch }: KeptAdmission): number {
  const highest = raiseEpoch(db, epoch);
  if (highest === epoch) keep(db, ADMISSION, admission);
  return highest;
}
