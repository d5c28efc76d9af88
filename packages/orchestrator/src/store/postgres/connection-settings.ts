import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { SandboxError } from "@turnbox/core";

/** What a `postgresql://` url says, in the words of the driver. */
export interface ConnectionSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  readonly applicationName: string;
  readonly ssl: ConnectionOptions | false;
}

const KNOWN = ["host", "port", "user", "dbname", "application_name", "sslmode", "sslrootcert", "sslcert", "sslkey"];
const SSL_MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
type SslMode = (typeof SSL_MODES)[number];

const invalid = (rule: string): SandboxError => new SandboxError("CONFIG_INVALID", `storeUrl: ${rule}`);

/**
 * Reads a url as libpq does: `postgresql://user:password@host:port/database?sslmode=...`, a socket's directory as
 * `?host=/run/postgresql`. A server on another machine must be named with an `sslmode`, and modes that anyone on the
 * wire can talk down to plain text are not known. A refusal never repeats the url.
 */
export function parseConnectionUrl(text: string): ConnectionSettings {
  const url = urlOf(text);
  const parameter = (name: string): string | undefined => url.searchParams.get(name) ?? undefined;
  const host = parameter("host") ?? decoded(url.hostname.replace(/^\[(.*)\]$/, "$1")) ?? "localhost";
  const user = parameter("user") ?? decoded(url.username);
  if (user === undefined) throw invalid("must name a user");
  return {
    host,
    port: portOf(parameter("port") ?? decoded(url.port) ?? "5432"),
    user,
    password: decoded(url.password),
    database: parameter("dbname") ?? decoded(url.pathname.slice(1)) ?? user,
    applicationName: parameter("application_name") ?? "turnbox-orchestrator",
    ssl: tlsOf(sslModeOf(parameter("sslmode"), host), parameter),
  };
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["postgres:", "postgresql:"].includes(url.protocol)) {
    throw invalid("must be a url that begins with postgresql:// (characters of a password are percent-encoded)");
  }
  const unknown = [...url.searchParams.keys()].filter((name) => !KNOWN.includes(name));
  if (unknown.length > 0) throw invalid(`does not know the parameters ${unknown.join(", ")}`);
  return url;
}

function decoded(part: string): string | undefined {
  try {
    return part === "" ? undefined : decodeURIComponent(part);
  } catch {
    throw invalid("has a % that begins no percent-encoded character");
  }
}

/** The server for messages and logs. */
export const describeServer = ({ host, port, database }: ConnectionSettings): string =>
  `${host.includes(":") ? `[${host}]` : host}:${String(port)}/${database}`;

function portOf(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw invalid("has a port that is none");
  return port;
}

function sslModeOf(mode: string | undefined, host: string): SslMode {
  const known = SSL_MODES.find((one) => one === mode);
  if (known !== undefined) return known;
  if (mode !== undefined) throw invalid(`has an sslmode other than ${SSL_MODES.join(", ")}`);
  if (host.startsWith("/") || ["localhost", "127.0.0.1", "::1"].includes(host)) return "disable";
  throw invalid("must say sslmode=verify-full (or disable, on a network that nobody else is on) for another machine");
}

function tlsOf(mode: SslMode, parameter: (name: string) => string | undefined): ConnectionOptions | false {
  if (mode === "disable") return false;
  const file = (name: string): string | undefined => {
    const path = parameter(name);
    if (path === undefined) return undefined;
    try {
      return readFileSync(path, "utf8");
    } catch (cause) {
      throw new SandboxError("CONFIG_INVALID", `storeUrl: ${name} cannot be read`, { cause });
    }
  };
  const [ca, cert, key] = [file("sslrootcert"), file("sslcert"), file("sslkey")];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: mode !== "require" || ca !== undefined,
    // `undefined` is Node's word for a name that is as it should be.
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}
