import { SandboxError } from "@turnbox/core";
import type { Query } from "./transactions.ts";

export interface MigrateOptions {
  readonly schema: string;
  readonly migrations: readonly string[];
}

/**
 * Brings the schema to the newest version, inside the caller's transaction. Whoever comes at the same time waits for the
 * lock and finds the work done. A schema of a newer version is refused and left as it is.
 */
export async function migrate(query: Query, { schema, migrations }: MigrateOptions): Promise<void> {
  await query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`turnbox store ${schema}`]);
  // Asked first: a role that may use an existing schema need not be one that may make schemas.
  const [found] = await query("SELECT 1 AS found FROM pg_namespace WHERE nspname = $1", [schema]);
  if (found === undefined) await query(`CREATE SCHEMA "${schema}"`);
  const [table] = await query("SELECT to_regclass($1)::text AS name", [`"${schema}".schema_version`]);
  if (typeof table?.["name"] !== "string") {
    await query(`CREATE TABLE "${schema}".schema_version (version integer NOT NULL)`);
    await query(`INSERT INTO "${schema}".schema_version VALUES (0)`);
  }
  const [row] = await query(`SELECT version FROM "${schema}".schema_version`);
  const version = Number(row?.["version"]);
  if (version > migrations.length) {
    throw new SandboxError(
      "HOME_VERSION_UNSUPPORTED",
      `the fleet's store has version ${String(version)}; this program knows versions up to ${String(migrations.length)}`,
    );
  }
  if (version === migrations.length) return;
  for (const migration of migrations.slice(version)) await query(migration);
  await query(`UPDATE "${schema}".schema_version SET version = ${String(migrations.length)}`);
}

/** Which fleet a store belongs to. All its orchestrators sign with one key, or hosts would know only some of them. */
export interface FleetClaim {
  readonly fleetId: string;
  /** Tells signing keys apart without being one. */
  readonly keyFingerprint: string;
}

/**
 * The first orchestrator says whose the store is; one of another fleet, or with another signing key, is refused as
 * `CONFIG_INVALID`. Two fleets in one store would end what is the other's.
 */
export async function claimFleet(query: Query, { fleetId, keyFingerprint }: FleetClaim): Promise<void> {
  await query("INSERT INTO fleet (fleet_id, key_fingerprint) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
    fleetId,
    keyFingerprint,
  ]);
  const [owner] = await query("SELECT fleet_id, key_fingerprint FROM fleet");
  if (owner?.["fleet_id"] !== fleetId) {
    const said = `storeUrl: the store belongs to the fleet ${String(owner?.["fleet_id"])}, and this is ${fleetId}`;
    throw new SandboxError("CONFIG_INVALID", `${said}; give all orchestrators the same home.json or fleetId`);
  }
  if (owner["key_fingerprint"] !== keyFingerprint) {
    const said = "storeUrl: the orchestrators of this store sign with another key";
    throw new SandboxError("CONFIG_INVALID", `${said}; copy keys/signing-key.pem from the home of one of them`);
  }
}
