import { isIP } from "node:net";
import { SandboxError } from "@turnbox/core";

export interface BindRequest {
  readonly host: string;
  readonly tls: "on" | "off";
  /** Whether callers hold signed tokens, whose public keys this server knows. */
  readonly keys: "present" | "absent";
}

/**
 * Loopback is open to plain HTTP and the home's token. Any other address is reachable by strangers, and needs TLS and keys.
 * Throws `CONFIG_INVALID`; call it before listening.
 */
export function assertBindPolicy({ host, tls, keys }: BindRequest): void {
  if (isLoopback(host)) return;
  const missing = [
    ...(tls === "on" ? [] : ["TLS (a certificate and its key)"]),
    ...(keys === "present" ? [] : ["public keys for tokens"]),
  ];
  if (missing.length === 0) return;
  throw new SandboxError(
    "CONFIG_INVALID",
    `binding to ${host}, which is not loopback, needs ${missing.join(" and ")}`,
    {
      metadata: { host },
    },
  );
}

/** Only what is loopback by its form: any other name could resolve to anything. */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1") return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
