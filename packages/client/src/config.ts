import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { invalidArgument, SandboxError } from "@turnbox/core";
import { type Endpoint, parseServiceUrl } from "./connection.ts";
import { readHomeToken, readServerRecord, readTokenFile } from "./home.ts";

export const DEFAULT_PORT = 7700;

export type Charset = "utf-8" | "ascii";

/** What the client takes from the environment variables. */
export interface Environment {
  /** Absolute. */
  readonly home: string;
  /** From TURNBOX_PORT; 0 lets the server choose. */
  readonly port?: number;
  /** Whether NO_COLOR asks for plain text. */
  readonly color: "allowed" | "refused";
  /** What the locale's character set can show. */
  readonly charset: Charset;
  /** All variables, for the programs that the CLI starts. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Reads the environment once, and complains about what breaks a rule. */
export function parseEnvironment(variables: Readonly<Record<string, string | undefined>>): Environment {
  const home = variables["TURNBOX_HOME"];
  const port = variables["TURNBOX_PORT"];
  const noColor = variables["NO_COLOR"];
  return {
    home: home === undefined || home === "" ? join(homedir(), ".turnbox") : resolve(home),
    ...(port === undefined || port === "" ? {} : { port: parsePort(port, "TURNBOX_PORT") }),
    color: noColor === undefined || noColor === "" ? "allowed" : "refused",
    charset: charsetOf(variables),
    variables: Object.fromEntries(
      Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}

/** By the rule of locales: the first of these that says anything decides. */
function charsetOf(variables: Readonly<Record<string, string | undefined>>): Charset {
  const locale = ["LC_ALL", "LC_CTYPE", "LANG"].map((name) => variables[name] ?? "").find((value) => value !== "");
  return /utf-?8/i.test(locale ?? "") ? "utf-8" : "ascii";
}

export function parsePort(raw: string, field: string): number {
  const port = /^\d{1,5}$/.test(raw) ? Number(raw) : Number.NaN;
  if (!(port >= 0 && port <= 65_535)) throw invalidArgument(field, `${JSON.stringify(raw)} is not a port (0 to 65535)`);
  return port;
}

/** What the command line says about the server. */
export interface ServerFlags {
  readonly url?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}

/**
 * Where the server is: `--url`, else TURNBOX_PORT on this machine, else what the home's server wrote down, else port 7700.
 * The token: `--token`, else `--token-file`, else the home's. The home's token goes to this machine only.
 */
export function resolveServer(flags: ServerFlags, environment: Environment): Endpoint {
  const url = resolveUrl(flags, environment);
  if (flags.token !== undefined) return { url, token: flags.token };
  if (flags.tokenFile !== undefined) {
    const token = readTokenFile(flags.tokenFile);
    if (token === undefined) throw invalidArgument("token-file", `there is no file ${flags.tokenFile}`);
    return { url, token };
  }
  if (!isLoopback(url)) {
    throw new SandboxError(
      "UNAUTHENTICATED",
      `${url} is not this machine: give its token with --token or --token-file`,
      {
        metadata: { url },
      },
    );
  }
  const token = readHomeToken(environment.home);
  if (token === undefined) {
    throw new SandboxError("SERVER_UNREACHABLE", `no server has run on the home ${environment.home}: it has no token`, {
      metadata: { url, home: environment.home },
    });
  }
  return { url, token };
}

/** The address alone, for what is asked without a token. */
export function resolveUrl(flags: ServerFlags, environment: Environment): string {
  if (flags.url !== undefined) return parseServiceUrl(flags.url);
  if (environment.port !== undefined && environment.port !== 0) return `http://127.0.0.1:${String(environment.port)}`;
  const record = readServerRecord(environment.home);
  return record === undefined ? `http://127.0.0.1:${String(DEFAULT_PORT)}` : parseServiceUrl(record.url);
}

/**
 * Whether a host that the server named may be given the server's token: only where both are on this machine. A server
 * elsewhere could name any address, and so collect tokens for somebody else.
 */
export const isTrustedHost = (hostUrl: string, server: Endpoint): boolean =>
  isLoopback(server.url) && isLoopback(hostUrl);

/** Whether an address is on this machine. */
export function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
