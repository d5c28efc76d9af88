import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, isLiving, type ProcessIdentity, readIfThere, SandboxError } from "@turnbox/core";

/** What a running server writes about itself into its home, and removes when it ends. */
export interface ServerRecord {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
}

/** Every home has it before anything else. */
export const HOME_MARK = "home.json";
/** Held by the server of a home from its first moment to its last. */
export const SERVER_LOCK = "orchestrator.lock";

export const tokenPath = (home: string): string => join(home, "token");
export const serverRecordPath = (home: string): string => join(home, "server.json");
export const serverLockPath = (home: string): string => join(home, SERVER_LOCK);
/** Held by a sandbox-host for as long as it works on its own home. */
export const hostLockPath = (hostHome: string): string => join(hostHome, "host.lock");

/** The record of the server of this home, or undefined if there is none. A broken one is `CONFIG_INVALID`. */
export function readServerRecord(home: string): ServerRecord | undefined {
  const path = serverRecordPath(home);
  const text = readOwnFile(path);
  if (text === undefined) return undefined;
  const { url, pid, version } = parseFields(text);
  if (typeof url !== "string" || !isPid(pid)) {
    throw new SandboxError("CONFIG_INVALID", `${path} is not a record of a server; remove it if none runs`, {
      metadata: { path },
    });
  }
  return { url, pid, version: typeof version === "string" ? version : "unknown" };
}

/** The living process that holds the lock file at `path`, or undefined. What a dead one left behind says nothing. */
export function readLockHolder(path: string): ProcessIdentity | undefined {
  const { pid, startTicks, bootId } = parseFields(readOwnFile(path) ?? "");
  if (!isPid(pid) || typeof startTicks !== "string" || typeof bootId !== "string") return undefined;
  const holder = { pid, startTicks, bootId };
  return isLiving(holder) ? holder : undefined;
}

/** The homes of the sandbox-hosts that this home's server has started. */
export async function listHostHomes(home: string): Promise<readonly string[]> {
  const directory = join(home, "hosts");
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
  } catch (cause) {
    if (hasErrno(cause, "ENOENT", "ENOTDIR")) return [];
    throw cause;
  }
}

/** The living sandbox-hosts of this home, whether or not their server still lives. */
export async function findHosts(home: string): Promise<readonly ProcessIdentity[]> {
  return (await listHostHomes(home)).flatMap((host) => readLockHolder(hostLockPath(host)) ?? []);
}

/** The token of this home, or undefined if no server has written one yet. */
export function readHomeToken(home: string): string | undefined {
  return readTokenFile(tokenPath(home));
}

/** A token from a file, without the line end. Undefined if there is no file; an empty one is refused. */
export function readTokenFile(path: string): string | undefined {
  const text = readOwnFile(path);
  if (text === undefined) return undefined;
  const token = text.trim();
  if (token === "")
    throw new SandboxError("UNAUTHENTICATED", `the token file ${path} is empty`, { metadata: { path } });
  return token;
}

type Field = "url" | "pid" | "version" | "startTicks" | "bootId";

/** The fields of a JSON object; none if the text is no such thing. */
function parseFields(text: string): Partial<Record<Field, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

const isPid = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 1;

function readOwnFile(path: string): string | undefined {
  try {
    return readIfThere(path);
  } catch (cause) {
    if (hasErrno(cause, "ENOTDIR")) return undefined;
    if (!hasErrno(cause, "EACCES", "EPERM")) throw cause;
    throw new SandboxError("PERMISSION_DENIED", `${path} may not be read by this user`, { cause, metadata: { path } });
  }
}
