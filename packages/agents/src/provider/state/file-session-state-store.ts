import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@turnbox/client";
import { errnoOf, invalidArgument, readIfThere, writeDraft } from "@turnbox/client/internal";
import type { ProviderCall } from "../provider.ts";
import { formatRecord, parseRecord } from "./record-json.ts";
import type { SessionRecord } from "./session-record.ts";
import type { SessionStateStore } from "./session-state-store.ts";

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SUFFIX = ".session.json";
const PRIVATE_DIRECTORY = 0o700;
const PRIVATE_FILE = 0o600;

/**
 * Keeps each session in a file of its own, for its owner's eyes only. A file is replaced whole: a crash leaves the old
 * one or the new one.
 */
export function createFileSessionStateStore(directory: string): SessionStateStore {
  mkdirSync(directory, { recursive: true, mode: PRIVATE_DIRECTORY });
  chmodSync(directory, PRIVATE_DIRECTORY);
  const pathOf = (sessionId: string): string => {
    if (SESSION_ID.test(sessionId)) return join(directory, `${sessionId}${SUFFIX}`);
    throw invalidArgument(
      "sessionId",
      "must be 1 to 128 letters, digits, dots, underscores or hyphens, the first a letter or digit",
    );
  };
  const load = (sessionId: string): SessionRecord | undefined => {
    const text = readIfThere(pathOf(sessionId));
    return text === undefined ? undefined : parseRecord(text, `${sessionId}${SUFFIX}`);
  };
  return {
    save: (record, call) =>
      attempt("written", call, () => {
        const path = pathOf(record.sessionId);
        renameSync(writeDraft(path, { content: formatRecord(record), mode: PRIVATE_FILE }), path);
      }),
    load: (sessionId, call) => attempt("read", call, () => load(sessionId)),
    list: (call) =>
      attempt("listed", call, () => {
        const names = readdirSync(directory).filter((name) => name.endsWith(SUFFIX));
        return names.sort().flatMap((name) => {
          try {
            return load(name.slice(0, -SUFFIX.length)) ?? [];
          } catch (thrown) {
            if (call?.onUnreadable === undefined) throw thrown;
            call.onUnreadable(SandboxError.from(thrown));
            return [];
          }
        });
      }),
    remove: (sessionId, call) =>
      attempt("removed", call, () => {
        rmSync(pathOf(sessionId), { force: true });
      }),
  };
}

/** Does the work for a caller who is still there; the system's refusals are named. */
async function attempt<R>(what: string, { signal }: ProviderCall = {}, work: () => R): Promise<R> {
  try {
    signal?.throwIfAborted();
    return work();
  } catch (thrown) {
    const errno = thrown instanceof SandboxError ? undefined : errnoOf(thrown);
    if (errno === undefined) throw SandboxError.from(thrown);
    throw new SandboxError("INTERNAL", `a session's state could not be ${what}: ${errno}`, { cause: thrown });
  }
}
