import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { HostConfig } from "../config.ts";
import {
  deleteSnapshot,
  fork,
  forkInto,
  readFile,
  rollBack,
  rowsOf,
  storedNames,
  writeAndSeal,
} from "../turn/turn.suite.ts";
import { CRASH_POINTS, type CrashPoint } from "./crash-point.ts";
import type { Session } from "./session.ts";

const pause = { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request" } as const;

const networkPolicy = {
  allowPublicIngress: false,
  allowOutbound: true,
  allowList: ["example.org"],
  denyList: [],
  required: false,
};
/** Only hand-overs need sessions that stand ready; none is made anew meanwhile. */
const configOf = (operation: Operation): Partial<HostConfig> =>
  operation === "handover" ? { warmSessions: 1, warmNetworkSessions: 1, warmRefillDelay: 3_600_000 } : {};

interface Scene {
  readonly session: Session;
  /** Turns that were answered: their ids, oldest first. */
  readonly sealed: readonly string[];
}

type Operation = "create" | "handover" | "seal" | "drop" | "rollback" | "fork" | "pause" | "resume" | "destroy";

/** What is done when the crash comes. Each may be done again afterwards, as a caller without an answer does. */
const OPERATIONS: Readonly<Record<Operation, (test: TestHost, scene: Scene) => Promise<unknown>>> = {
  create: (test) => test.create({ sessionId: "new", idempotencyKey: "k" }),
  handover: (test) =>
    test.create({ sessionId: "new", idempotencyKey: "k", limits: { cpus: 2 }, quotaBytes: 1_000_000, networkPolicy }),
  seal: (test, { session }) =>
    test.host.completeTurn(
      session,
      { turnKey: "k", outcome: "succeeded", expectedGeneration: undefined },
      { signal: SIGNAL },
    ),
  drop: (test, { session, sealed }) => deleteSnapshot(test, session, sealed[0] ?? "", "k"),
  rollback: (test, { session, sealed }) => rollBack(test, session, sealed[0] ?? ""),
  fork: (test, { session }) => fork(test, session, { idempotencyKey: "k", count: 2 }),
  pause: (test, { session }) => test.host.pauseSession(session, pause, { signal: SIGNAL }),
  resume: async (test, { session }) => {
    await test.host.pauseSession(session, pause, { signal: SIGNAL });
    await test.host.resumeSession(session, { expectedGeneration: undefined }, { signal: SIGNAL });
  },
  destroy: (test, { session }) => test.host.destroySession(session),
};

const operationOf = (point: CrashPoint): Operation => point.slice(0, point.indexOf(".")) as Operation;

describe("a crash at", () => {
  it.each(CRASH_POINTS)("%s loses nothing that was acknowledged and leaves nothing behind", async (point) => {
    const operation = operationOf(point);
    const reached = Promise.withResolvers<undefined>();
    let armed = false;
    const before = await startTestHost(configOf(operation), {
      crashPoint: async (now) => {
        if (!armed || now !== point) return;
        reached.resolve(undefined);
        // Nothing after this point ever happens.
        await new Promise(() => undefined);
      },
    });
    if (operation === "handover") await eventually(() => before.host.warm.stats().ready === 2);
    const session = await before.create({ sessionId: "s" });
    const sealed = [await writeAndSeal(before, session, "one"), await writeAndSeal(before, session, "two")];
    if (point === "destroy.shrunk") await forkInto(before, session, { childIds: ["child"] });
    await before.bash(session, "write /workspace/a three");
    armed = true;
    void OPERATIONS[operation](before, { session, sealed }).catch(() => undefined);
    await reached.promise;

    await using after = await before.restart();
    if (operation === "destroy") {
      await eventually(() => after.host.registry.find("s") === undefined);
    } else {
      const again = found(after, "s");
      await checkSession(after, { session: again, sealed, operation });
      await OPERATIONS[operation](after, { session: again, sealed }).catch((thrown: unknown) => {
        // The drop of a snapshot without a receipt that is gone already.
        expect(thrown).toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
      });
    }
    await eventually(() => after.host.registry.all().every(({ row }) => row.phase.kind !== "destroying"));
    expect(after.host.registry.size).toBe(expectedSize(point));
    await checkNothingLeft(after);
  });
});

/** How many sessions there are when the operation has been done, once. */
function expectedSize(point: CrashPoint): number {
  if (point === "destroy.shrunk") return 1;
  const sizes: Partial<Record<Operation, number>> = { create: 2, handover: 2, fork: 3, destroy: 0 };
  return sizes[operationOf(point)] ?? 1;
}

/** Everything that was answered is there, once, and the session goes on. */
async function checkSession(
  test: TestHost,
  { session, sealed, operation }: Scene & { readonly operation: Operation },
): Promise<void> {
  const rows = await rowsOf(test, session);
  expect(rows.map(({ name }) => name).sort()).toEqual(await storedNames(test, session));
  const kept = operation === "drop" ? sealed.slice(1) : sealed;
  expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining([...kept]));
  if (session.row.phase.kind === "paused")
    await test.host.resumeSession(session, { expectedGeneration: undefined }, { signal: SIGNAL });
  expect(session.row.phase.kind).toBe("active");
  expect(["one", "three"]).toContain(await readFile(test, session));
  if (operation !== "rollback") expect(await readFile(test, session)).toBe("three");
}

async function checkNothingLeft(test: TestHost): Promise<void> {
  expect(await test.host.records.call("listIntents", null)).toEqual([]);
  await eventually(async () => {
    const sessions = await test.host.records.call("listSessions", null);
    const husks = await test.host.records.call("listHusks", null);
    const recorded = [...sessions, ...husks].map(({ token }) => token).sort();
    const stored = (await test.storage.inventory({ signal: SIGNAL })).map(({ token }) => token).sort();
    const containers = sessions.flatMap(({ container }) => container ?? []);
    const running = await test.runtime.list({ signal: SIGNAL });
    return isDeepStrictEqual(recorded, stored) && running.every((id) => containers.includes(id));
  });
}

function found(test: TestHost, id: string): Session {
  const session = test.host.registry.find(id);
  if (session === undefined) throw new Error(`session ${id} is gone`);
  return session;
}

async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!(await check())) {
    if (performance.now() > deadlineMs) throw new Error("it did not come to be");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
