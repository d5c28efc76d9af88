import { SandboxError } from "@turnbox/core";
import { parseInstanceId } from "../instance-id.ts";

/**
 * All that a new machine gets. All who may describe machines can read it, and so can every process on the machine
 * that reaches the metadata service; none of it is a secret.
 */
export interface UserDataFacts {
  readonly instanceId: string;
  readonly fleetId: string;
  /** By which the host knows the fleet's tokens; it can sign none itself. */
  readonly publicKeyPem: string;
  readonly hostPort: number;
}

const PLACEHOLDER = /@@([A-Z0-9_]+)@@/g;
const PUBLIC_KEYS = /^(\s*-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*)+$/;

/**
 * Puts the facts in the place of `@@INSTANCE_ID@@`, `@@FLEET_ID@@`, `@@PUBLIC_KEY_BASE64@@` and `@@HOST_PORT@@`. A
 * template with another placeholder, or without one of these, is `CONFIG_INVALID`.
 */
export function renderUserData(template: string, facts: UserDataFacts): string {
  const values: ReadonlyMap<string, string> = new Map([
    ["INSTANCE_ID", parseInstanceId(facts.instanceId)],
    ["FLEET_ID", parseFleetId(facts.fleetId)],
    ["PUBLIC_KEY_BASE64", Buffer.from(parsePublicKeys(facts.publicKeyPem)).toString("base64")],
    ["HOST_PORT", String(facts.hostPort)],
  ]);
  const used = new Set<string>();
  const rendered = template.replaceAll(PLACEHOLDER, (_whole, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new SandboxError("CONFIG_INVALID", `user data: there is no value for @@${name}@@`);
    used.add(name);
    return value;
  });
  const unused = [...values.keys()].filter((name) => !used.has(name));
  if (unused.length > 0) {
    throw new SandboxError("CONFIG_INVALID", `user data: the template never says @@${unused.join("@@, @@")}@@`);
  }
  return rendered;
}

function parseFleetId(raw: string): string {
  if (!/^[a-z][0-9a-z]{7,31}$/.test(raw)) {
    throw new SandboxError(
      "CONFIG_INVALID",
      "user data: the fleet's id must be a lower-case letter and 7 to 31 lower-case letters and digits, as of a home",
    );
  }
  return raw;
}

function parsePublicKeys(pem: string): string {
  if (!PUBLIC_KEYS.test(pem)) {
    throw new SandboxError("CONFIG_INVALID", "user data: public keys are all that a machine is given");
  }
  return pem;
}
