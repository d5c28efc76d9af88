import { createHash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { SessionRow } from "./row.ts";

/** Environments by the hash of their content: sessions that have the same one share its row. An empty one has none. */
export const TABLE_OF_ENVIRONMENTS = `
  CREATE TABLE environments (hash TEXT PRIMARY KEY, env TEXT NOT NULL) STRICT;
  CREATE INDEX sessions_by_environment ON sessions (env_hash) WHERE env_hash IS NOT NULL;
`;

export type Environment = SessionRow["env"];

/** A session as its own row has it: what changes with its turns. */
export type StoredSession = Omit<SessionRow, "env">;

const NONE: Environment = {};

/** Stores the environment if it is not stored yet. Returns the hash that sessions refer to it by. */
export function keepEnvironment(db: DatabaseSync, env: Environment): string | null {
  if (Object.keys(env).length === 0) return null;
  const text = JSON.stringify(env);
  const hash = createHash("sha256").update(text).digest("hex");
  db.prepare("INSERT INTO environments (hash, env) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING").run(hash, text);
  return hash;
}

/** Removes the environment when no session refers to it any more. */
export function dropEnvironment(db: DatabaseSync, hash: string | null): void {
  if (hash === null) return;
  db.prepare("DELETE FROM environments WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE env_hash = ?)").run(
    hash,
    hash,
  );
}

export function environmentOf(db: DatabaseSync, token: string): string | null {
  const hash = db.prepare("SELECT env_hash FROM sessions WHERE token = ?").get(token)?.["env_hash"];
  return hash === undefined || hash === null ? null : String(hash);
}

/** The row without the environment, as it is stored. */
export function rowText(row: StoredSession & { readonly env?: Environment }): string {
  return JSON.stringify({ ...row, env: undefined });
}

/** All sessions. Each environment is read once, and those that share it have the same object. */
export function listSessions(db: DatabaseSync): readonly SessionRow[] {
  const read = db.prepare("SELECT env FROM environments WHERE hash = ?");
  const known = new Map<string, Environment>();
  const find = (hash: string): Environment => {
    const env = known.get(hash) ?? (JSON.parse(String(read.get(hash)?.["env"] ?? "{}")) as Environment);
    known.set(hash, env);
    return env;
  };
  return db
    .prepare("SELECT row, env_hash FROM sessions")
    .all()
    .map(({ row, env_hash: hash }) => ({
      ...(JSON.parse(String(row)) as StoredSession),
      env: typeof hash === "string" ? find(hash) : NONE,
    }));
}
