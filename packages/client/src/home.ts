import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ProcessIdentity, SandboxError } from "@turnbox/core";

/** What a running server writes about itself into its home, and removes when it ends. */
export interface ServerRecord {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  /** Which incarnation of the pid it is; absent where the server did not say. */
  readonly identity?: ProcessIdentity;
  /** When the record was written, by the file's own time. */
  readonly writtenAtMs: number;
}

export const tokenPath = (home: string): string => join(home, "token");
export const serverRecordPath = (home: string): string => join(home, "server.json");
/** Each local sandbox-host has a directory of its own below this one. */
export const hostsPath = (home: string): string => join(home, "hosts");

/** The record of the server of this home, or undefined where there is none. A broken one is `CONFIG_INVALID`. */
export async function readServerRecord(home: string): Promise<ServerRecord | undefined> {
  const path = serverRecordPath(home);
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  const record = parseServerRecord(text);
  if (record === undefined) {
    throw new SandboxError("CONFIG_INVALID", `${path} is not a record of a server; remove it if none runs`, {
      metadata: { path },
    });
  }
  const { mtimeMs } = await stat(path);
  return { ...record, writtenAtMs: mtimeMs };
}

/** The token of this home, or undefined where no server has written one yet. */
export async function readHomeToken(home: string): Promise<string | undefined> {
  return await readTokenFile(tokenPath(home));
}

/** A token from a file, without the line end. Undefined where there is no file; an empty one is refused. */
export async function readTokenFile(path: string): Promise<string | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  const token = text.trim();
  if (token === "")
    throw new SandboxError("UNAUTHENTICATED", `the token file ${path} is empty`, { metadata: { path } });
  return token;
}

function parseServerRecord(text: string): Omit<ServerRecord, "writtenAtMs"> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { url, pid, version, startTicks, bootId } = value as Partial<
    Record<"url" | "pid" | "version" | "startTicks" | "bootId", unknown>
  >;
  if (typeof url !== "string" || typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 1) return undefined;
  const isIdentified = typeof startTicks === "string" && typeof bootId === "string";
  return {
    url,
    pid,
    version: typeof version === "string" ? version : "unknown",
    ...(isIdentified ? { identity: { pid, startTicks, bootId } } : {}),
  };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "EACCES" || code === "EPERM") {
      throw new SandboxError("PERMISSION_DENIED", `${path} may not be read by this user`, {
        cause,
        metadata: { path },
      });
    }
    throw cause;
  }
}
