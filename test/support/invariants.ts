import { expect } from "@jest/globals";
import type { TestHost } from "./host.ts";
import { destroy, listSessions } from "./host-calls.ts";
import { poll, run } from "./process.ts";
import { readRecords } from "./records.ts";
import { findPool, findResidue, type Residue } from "./residue.ts";

const NOTHING: Residue = { datasets: [], mounts: [], containers: [], cgroups: [], netns: [], processes: [] };

interface Books {
  readonly places: readonly string[];
  readonly snapshots: readonly string[];
  readonly intents: readonly unknown[];
}

/**
 * Records and pool tell the same: every session and snapshot is in both, once, and no operation is half done. Removals
 * and retention go on in the background and are waited for.
 */
export async function expectConsistent(host: TestHost): Promise<void> {
  let seen = await audit(host);
  const look = async (): Promise<true | undefined> => {
    seen = await audit(host);
    return JSON.stringify(seen.recorded) === JSON.stringify(seen.stored) ? true : undefined;
  };
  await poll("records and pool to agree", look, 30_000).catch(() => undefined);
  expect(seen.recorded).toEqual(seen.stored);
}

async function audit(host: TestHost): Promise<{ readonly recorded: Books; readonly stored: Books }> {
  const { sessions, snapshots, husks, intents } = readRecords(host.dataDirectory);
  const pool = await findPool(host.home);
  const list = ["list", "-H", "-r", "-t", "filesystem,snapshot", "-o", "name", `${pool ?? ""}/sessions`];
  const found = (await run("zfs", list)).stdout
    .split("\n")
    .map((name) => /^[^/]+\/sessions\/([^/@]+)(?:\/g\d+(?:@(.+))?)?$/.exec(name))
    .filter((match) => match !== null)
    .map(([, token, snapshot]) => ({ token: token ?? "", snapshot }));
  const live = new Set(sessions.map(({ token }) => token));
  return {
    recorded: {
      places: [...live, ...husks].sort(),
      snapshots: snapshots.map(({ name }) => name).sort(),
      intents,
    },
    stored: {
      places: [...new Set(found.map(({ token }) => token))].sort(),
      // What is left of a destroyed session is nobody's to list.
      snapshots: found.flatMap(({ token, snapshot }) => (live.has(token) ? (snapshot ?? []) : [])).sort(),
      intents: [],
    },
  };
}

/** Destroys all sessions of the host; then nothing of any is on the machine. */
export async function expectNothingLeft(host: TestHost): Promise<void> {
  const containers = readRecords(host.dataDirectory).sessions.flatMap(({ container }) => container ?? []);
  const sessions = await listSessions(host);
  for (const { sessionId } of sessions) await destroy(host, sessionId);
  let left: unknown;
  const look = async (): Promise<true | undefined> => {
    const { snapshots, husks, intents, ...records } = readRecords(host.dataDirectory);
    const residue = await findResidue(host.home, containers);
    left = { sessions: records.sessions, snapshots, husks, intents, ...residue };
    return isEmpty(left as Readonly<Record<string, readonly unknown[]>>) ? true : undefined;
  };
  await poll("everything to be gone", look, 60_000 + sessions.length * 1000).catch(() => undefined);
  expect(left).toEqual({ sessions: [], snapshots: [], husks: [], intents: [], ...NOTHING });
}

function isEmpty(found: Readonly<Record<string, readonly unknown[]>>): boolean {
  return Object.values(found).every((list) => list.length === 0);
}
