import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, type Log } from "@turnbox/core";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { type Containers, createContainers } from "../container/container.ts";
import { FakeNetwork } from "../network/fake/fake-network.ts";
import { openRecords, type Records } from "../record/records.ts";
import type { SessionRow, SnapshotRow } from "../record/row.ts";
import { createFakeMachine, createFakeRuntime, type FakeRuntime } from "../runtime/fake/fake-runtime.ts";
import { createFakeStorage, type FakeStorage } from "../storage/fake/fake-storage.ts";
import { type Activity, createActivity } from "./activity.ts";
import { createSessionEvents, type SessionEvents } from "./events.ts";
import { createReceipts, type Receipts } from "./receipts.ts";
import { createRegistry, type Registry } from "./registry.ts";
import { createSession, type Session } from "./session.ts";

/** The parts that the nouns about sessions are made of, on fakes and a clock that stands still, for tests of one noun. */
export interface Rig extends AsyncDisposable {
  readonly clock: ManualClock;
  readonly log: Log;
  /** Every line that was logged. */
  readonly logged: readonly Readonly<Record<string, unknown>>[];
  readonly records: Records;
  readonly storage: FakeStorage;
  readonly runtime: FakeRuntime;
  readonly network: FakeNetwork;
  readonly events: SessionEvents;
  readonly registry: Registry;
  readonly activity: Activity;
  readonly receipts: Receipts;
  readonly containers: Containers;
  /** A session with files, in the records and in the registry. */
  add(row?: Partial<SessionRow>): Promise<Session>;
  /** Seals the session's files as they are and records it. */
  seal(session: Session, id: string): Promise<SnapshotRow>;
}

export const CALL: { readonly signal: AbortSignal } = { signal: new AbortController().signal };
export const BASE = { name: "mini", digest: "0123456789abcdef" };

export async function createRig(): Promise<Rig> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-rig-"));
  const clock = createManualClock();
  const logged: Readonly<Record<string, unknown>>[] = [];
  const write = (line: string): void => void logged.push(JSON.parse(line) as Readonly<Record<string, unknown>>);
  const log = createLog({ name: "test", level: "debug", to: { write } });
  const records = await openRecords(join(directory, "host.db"));
  const storage = createFakeStorage({ directory: await mkdtemp(join(directory, "storage-")), clock });
  await storage.open(CALL);
  await storage.createBase(BASE, (path) => writeFile(join(path, "a.txt"), "base"), CALL);
  const runtime = createFakeRuntime({ machine: createFakeMachine() });
  const network = new FakeNetwork();
  const events = createSessionEvents({ clock });
  const registry = createRegistry({ maxSessions: 0, events });
  let count = 0;
  return {
    clock,
    log,
    logged,
    records,
    storage,
    runtime,
    network,
    events,
    registry,
    activity: createActivity({ clock }),
    receipts: createReceipts({ records, clock }),
    containers: createContainers({ storage, runtime, network, clock, log }),
    add: async (more = {}) => {
      count += 1;
      const row = rowOf(`s${count}`, { createdAtMs: clock.nowMs(), ...more });
      await records.call("insertSession", row);
      await storage.createSession({ token: row.token, origin: { kind: "base", base: BASE }, marks: {} }, CALL);
      const session = createSession(row, { records, events });
      registry.add(session);
      return session;
    },
    seal: async (session, id) => {
      const snapshot = snapshotOf(id, session.row);
      await storage.seal(session.head, snapshot.name, {}, CALL);
      await session.commit((row) => ({ ...row, parentSnapshot: id, turnCounter: row.turnCounter + 1 }), { snapshot });
      return snapshot;
    },
    [Symbol.asyncDispose]: async () => {
      await records[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function rowOf(id: string, more: Partial<SessionRow> = {}): SessionRow {
  return {
    id,
    tenant: "default",
    token: `t${id}`,
    phase: { kind: "active" },
    generation: 1,
    headGeneration: 1,
    base: BASE,
    createdAtMs: 1,
    labels: {},
    env: {},
    limits: {},
    timing: { ttlMs: null, expiresAtMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
    ports: [],
    networkPolicy: null,
    exposures: [],
    forkedFrom: null,
    quotaBytes: null,
    refquotaBytes: null,
    container: null,
    turnCounter: 0,
    parentSnapshot: null,
    ...more,
  };
}

export function snapshotOf(id: string, row: SessionRow): SnapshotRow {
  return {
    id,
    token: row.token,
    name: `n${id}`,
    kind: "turn",
    turnNumber: row.turnCounter + 1,
    turnKey: null,
    outcome: "succeeded",
    title: null,
    toolCallId: null,
    createdAtMs: row.createdAtMs,
    parent: row.parentSnapshot,
    generation: row.generation,
  };
}

/** Waits for what comes by itself, with a deadline. */
export async function until(is: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await is())) {
    if (performance.now() > deadline) throw new Error("it did not come to be");
    await new Promise((resolve) => void setImmediate(resolve));
  }
}
