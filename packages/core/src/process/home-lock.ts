import { createHash } from "node:crypto";
import { linkSync, renameSync, rmSync } from "node:fs";
import { SandboxError } from "../error/sandbox-error.ts";
import { writeDraft } from "../file/create-once.ts";
import { hasErrno } from "../file/errno.ts";
import { readIfThere } from "../file/read-if-there.ts";
import { randomToken } from "../id/token.ts";
import { identifyProcess, isLiving, type ProcessIdentity } from "./process-identity.ts";

/** The right to serve a home. Disposing it gives the home free; so does the death of the process that holds it. */
export interface HomeLock extends AsyncDisposable {
  readonly path: string;
}

/** A chain of dead takers is as long as the crashes inside one takeover; more means something else is wrong. */
const MAX_ATTEMPTS = 20;

/**
 * Takes the lock file at `path` for this process, or throws `HOME_IN_USE` naming the pid that holds it. A lock whose
 * process is dead, or whose pid now belongs to another process, is taken over.
 *
 * The file appears complete, by a link. Replacing a dead lock is a right of its own: it belongs to whoever holds the lock
 * file named after the dead lock's content, so that of several that find it dead, one replaces it.
 */
export async function acquireHomeLock(path: string): Promise<HomeLock> {
  const self = identifyProcess(process.pid) ?? { pid: process.pid, startTicks: "", bootId: "" };
  const content = JSON.stringify({ ...self, nonce: randomToken(12) });
  take(path, content);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      if (readIfThere(path) === content) rmSync(path, { force: true });
      await Promise.resolve();
    },
  };
}

function take(path: string, content: string): void {
  const draft = writeDraft(path, { content, mode: 0o600 });
  try {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      if (tryLink(draft, path)) return;
      const present = readIfThere(path);
      if (present === undefined) continue;
      const holder = parseIdentity(present);
      if (holder !== undefined && isLiving(holder)) throw inUse(holder.pid);
      if (replaceDead(path, { dead: present, draft, content })) return;
    }
    throw new SandboxError("HOME_IN_USE", "the lock of the home changes hands faster than it can be taken");
  } finally {
    rmSync(draft, { force: true });
  }
}

interface Replacement {
  readonly dead: string;
  readonly draft: string;
  readonly content: string;
}

/** Only the holder of the right may move anything over `path`, so between the look and the move nothing changes. */
function replaceDead(path: string, { dead, draft, content }: Replacement): boolean {
  const right = `${path}.${createHash("sha256").update(dead).digest("hex").slice(0, 16)}`;
  take(right, content);
  try {
    if (readIfThere(path) !== dead) return false;
    renameSync(draft, path);
    return true;
  } finally {
    rmSync(right, { force: true });
  }
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (cause) {
    if (hasErrno(cause, "EEXIST")) return false;
    throw cause;
  }
}

/** A lock that cannot be read is one that a power cut left empty: nobody holds it. */
function parseIdentity(text: string): ProcessIdentity | undefined {
  try {
    const { pid, startTicks, bootId } = JSON.parse(text) as Partial<ProcessIdentity>;
    if (typeof pid !== "number" || typeof startTicks !== "string" || typeof bootId !== "string") return undefined;
    return { pid, startTicks, bootId };
  } catch {
    return undefined;
  }
}

function inUse(pid: number): SandboxError {
  return new SandboxError("HOME_IN_USE", `the home is in use by process ${pid}`, { metadata: { pid: String(pid) } });
}
