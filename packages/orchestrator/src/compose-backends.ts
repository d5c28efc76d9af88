import { createHash, randomInt } from "node:crypto";
import { join } from "node:path";
import type { SigningKeys } from "@turnbox/core";
import type { OrchestratorOptions } from "./orchestrator-options.ts";
import { fleetTags } from "./fleet/registry/fleet-tags.ts";
import { createLocalProcessProvisioner } from "./provisioner/local-process/local-process-provisioner.ts";
import type { Provisioner } from "./provisioner/provisioner.ts";
import { parseStaticHost } from "./provisioner/static/static-settings.ts";
import { openSqliteStore } from "./store/sqlite/sqlite-store.ts";
import type { Store } from "./store/store.ts";

/** Which fleet it is, and what its hosts know its tokens by. */
export interface FleetOwner {
  readonly fleetId: string;
  readonly keys: SigningKeys;
}

/** What a host gets on top of its own shutdown timeout before it is ended by force. */
const STOP_MARGIN_MS = 15_000;
const RANDOM_STEPS = 2 ** 32;

/** A file in the home, or the database that several orchestrators share. */
export async function openStore(
  { config, home, clock }: OrchestratorOptions,
  { fleetId, keys }: FleetOwner,
  call: { readonly signal: AbortSignal },
): Promise<Store> {
  if (config.storeUrl === null) return await openSqliteStore(join(home, "fleet.db"), { ...call, clock });
  const { openPostgresStore } = await import("./store/postgres/postgres-store.ts");
  const publicKey = keys.publicKey.export({ type: "spki", format: "der" });
  const claim = { fleetId, keyFingerprint: createHash("sha256").update(publicKey).digest("hex") };
  return await openPostgresStore({ url: config.storeUrl.reveal(), claim, clock }, call);
}

/** `onChange` is called when a machine has changed by itself, if the provisioner notices such things. */
export async function openProvisioner(
  options: OrchestratorOptions,
  { fleetId, keys }: FleetOwner,
  onChange: () => void,
): Promise<Provisioner> {
  const { config, home, clock, log } = options;
  const tags = fleetTags(fleetId);
  switch (config.provisioner) {
    case "local":
      return createLocalProcessProvisioner({
        nodePath: process.execPath,
        hostEntry: options.hostEntry,
        home,
        env: options.hostEnv,
        readyTimeoutMs: config.hostReadyTimeout,
        stopTimeoutMs: config.shutdownTimeout + STOP_MARGIN_MS,
        clock,
        logger: log,
        onChange,
      });
    case "static": {
      const { createStaticProvisioner } = await import("./provisioner/static/static-provisioner.ts");
      return createStaticProvisioner({ hosts: config.staticHosts.map(parseStaticHost), tags, clock });
    }
    case "ec2": {
      const { createEc2ProvisionerFromConfig } = await import("./provisioner/ec2/ec2-provisioner-from-config.ts");
      const publicKeyPem = keys.publicKey.export({ type: "spki", format: "pem" }).toString();
      return createEc2ProvisionerFromConfig({
        config,
        fleetId,
        tags,
        publicKeyPem,
        clock,
        logger: log,
        random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
      });
    }
  }
}
