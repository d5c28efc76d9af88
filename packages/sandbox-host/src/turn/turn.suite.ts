import { SIGNAL, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { ForkRequest } from "./fork.ts";

/** Calls of the turn's use cases as tests make them, with defaults for what a test does not care about. */

export const completeTurn = (test: TestHost, session: Session, turnKey = "") =>
  test.host.completeTurn(session, { turnKey, outcome: "succeeded", expectedGeneration: undefined }, { signal: SIGNAL });

/** Writes a file and seals the turn; returns the snapshot's id. */
export async function writeAndSeal(test: TestHost, session: Session, text: string): Promise<string> {
  await test.bash(session, `write /workspace/a ${text}`);
  const { snapshot } = await completeTurn(test, session);
  if (snapshot === null) throw new Error("the turn has no snapshot");
  return snapshot.id;
}

export const takeSnapshot = (test: TestHost, session: Session, title: string, key = "") =>
  test.host.createSnapshot(
    session,
    { idempotencyKey: key, payload: title, title, expectedGeneration: undefined },
    { signal: SIGNAL },
  );

export const deleteSnapshot = (test: TestHost, session: Session, snapshotId: string, key = "") =>
  test.host.deleteSnapshot(session, { idempotencyKey: key, payload: snapshotId, snapshotId }, { signal: SIGNAL });

export const rollBack = (
  test: TestHost,
  session: Session,
  snapshotId: string,
  more: { readonly drainTimeoutMs?: number; readonly generation?: number } = {},
) =>
  test.host.rollbackSession(
    session,
    {
      idempotencyKey: "",
      payload: snapshotId,
      snapshotId,
      expectedGeneration: more.generation,
      drainTimeoutMs: more.drainTimeoutMs ?? 0,
      processes: "stop",
    },
    { signal: SIGNAL },
  );

export const fork = (test: TestHost, session: Session, more: Partial<ForkRequest> = {}) =>
  test.host.forkSession(
    session,
    {
      idempotencyKey: "",
      payload: "",
      expectedGeneration: undefined,
      snapshotId: null,
      count: 1,
      childIds: [],
      labels: null,
      env: null,
      limits: {},
      networkPolicy: null,
      rights: { network: "any", limits: "any" },
      ttlMs: null,
      ...more,
    },
    { signal: SIGNAL },
  );

/** The children of a fork that were made. */
export async function forkInto(test: TestHost, session: Session, more: Partial<ForkRequest> = {}): Promise<Session[]> {
  const { children } = await fork(test, session, more);
  return children.flatMap((child) => ("id" in child ? (test.host.registry.find(child.id) ?? []) : []));
}

export const readFile = async (test: TestHost, session: Session): Promise<string> =>
  (await test.bash(session, "cat /workspace/a")).content;

export const rowsOf = (test: TestHost, session: Session) => test.host.records.call("listSnapshots", session.row.token);

export const storedNames = async (test: TestHost, session: Session): Promise<string[]> =>
  (await test.storage.listSnapshots(session.row.token, { signal: SIGNAL })).map(({ name }) => name).sort();

/** Settles when the session, and everything else that was being removed, is gone. */
export async function destroyed(test: TestHost, session: Session): Promise<void> {
  await test.host.destroySession(session);
  const deadlineMs = performance.now() + 10_000;
  while ((await test.host.health.report()).removals.length > 0) {
    if (performance.now() > deadlineMs) throw new Error("a session is still being removed");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
