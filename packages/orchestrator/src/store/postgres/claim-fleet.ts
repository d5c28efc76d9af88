import { SandboxError } from "@turnbox/core";
import type { Query } from "./transactions.ts";

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
