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
  /** From TURNBOX_URL, TURNBOX_TOKEN and TURNBOX_TOKEN_FILE: what is used if nothing else is given. */
  readonly server: ServerFlags;
  /** Colours are for terminals, unless NO_COLOR, FORCE_COLOR or a terminal that knows none says otherwise. */
  readonly color: "allowed" | "refused" | "forced";
  /** What the locale's character set can show. */
  readonly charset: Charset;
  /** All variables, for the programs that the CLI starts. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Reads the environment once, and complains about what breaks a rule. */
export function parseEnvironment(variables: Readonly<Record<string, string | undefined>>): Environment {
  const home = variables["TURNBOX_HOME"];
  const port = variables["TURNBOX_PORT"];
  return {
    home: home === undefined || home === "" ? join(homedir(), ".turnbox") : resolve(home),
    ...(port === undefined || port === "" ? {} : { port: parsePort(port, "TURNBOX_PORT") }),
    server: {
      ...(isSet(variables["TURNBOX_URL"]) ? { url: variables["TURNBOX_URL"] } : {}),
      ...(isSet(variables["TURNBOX_TOKEN"]) ? { token: variables["TURNBOX_TOKEN"] } : {}),
      ...(isSet(variables["TURNBOX_TOKEN_FILE"]) ? { tokenFile: variables["TURNBOX_TOKEN_FILE"] } : {}),
    },
    color: colorOf(variables),
    charset: charsetOf(variables),
    variables: Object.fromEntries(
      Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}

const isSet = (value: string | undefined): value is string => value !== undefined && value !== "";

/** FORCE_COLOR goes first, as in Node; 0 and false turn colours off. */
function colorOf(variables: Readonly<Record<string, string | undefined>>): Environment["color"] {
  const forced = variables["FORCE_COLOR"];
  if (forced !== undefined) return forced === "0" || forced === "false" ? "refused" : "forced";
  return (variables["NO_COLOR"] ?? "") !== "" || variables["TERM"] === "dumb" ? "refused" : "allowed";
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

/** What a program says about the server. */
export interface ServerWish extends ServerFlags {
  readonly home?: string;
  /** The environment variables; the process's own unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Where the library finds the server. A home that is named means its own server, whatever the environment says. */
export function resolveTurnbox({ home, env = process.env, ...flags }: ServerWish): Endpoint {
  const variables = home === undefined ? env : { TURNBOX_HOME: home };
  return resolveServer(flags, parseEnvironment(variables));
}

/**
 * Where the server is: `--url`, else TURNBOX_URL, else TURNBOX_PORT on this machine, else what the home's server wrote down,
 * else port 7700. The token: `--token`, else `--token-file`, else TURNBOX_TOKEN, else the file of TURNBOX_TOKEN_FILE, else
 * the home's. The home's token goes to this machine only.
 */
export function resolveServer(flags: ServerFlags, environment: Environment): Endpoint {
  const url = resolveUrl(flags, environment);
  const given = givenToken(flags, "token-file") ?? givenToken(environment.server, "TURNBOX_TOKEN_FILE");
  if (given !== undefined) return { url, token: given };
  if (!isLoopback(url)) {
    throw new SandboxError(
      "UNAUTHENTICATED",
      `${url} is not this machine: give its token with --token, --token-file or TURNBOX_TOKEN`,
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

/** The token that flags or variables name; `field` is what the file's name is called there. */
function givenToken({ token, tokenFile }: ServerFlags, field: string): string | undefined {
  if (token !== undefined || tokenFile === undefined) return token;
  const read = readTokenFile(tokenFile);
  if (read === undefined) throw invalidArgument(field, `there is no file ${tokenFile}`);
  return read;
}

/** The address alone, for what is asked without a token. */
export function resolveUrl(flags: ServerFlags, environment: Environment): string {
  const url = flags.url ?? environment.server.url;
  if (url !== undefined) return parseServiceUrl(url);
  if (environment.port !== undefined && environment.port !== 0) return `http://127.0.0.1:${String(environment.port)}`;
  const record = readServerRecord(environment.home);
  return record === undefined ? `http://127.0.0.1:${String(DEFAULT_PORT)}` : parseServiceUrl(record.url);
}

/**
 * Whether a host that the server named may be given the server's token: only if both are on this machine. A server
 * elsewhere could name any address, and so collect tokens of other users.
 */
export const isTrustedHost = (hostUrl: string, server: Endpoint): boolean =>
  isLoopback(server.url) && isLoopback(hostUrl);

/** Whether an address is on this machine. */
export function isLoopback(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
