import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { CRASH_POINTS, type CrashPoint } from "../../packages/sandbox-host/src/session/crash-point.ts";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import {
  bash,
  completeTurn,
  createSession,
  destroy,
  digest,
  fork,
  getSession,
  listSessions,
  listSnapshots,
  script,
} from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { createRandom, IS_FULL, SEED, shuffled } from "../support/random.ts";

/** How many points fit into a minute. */
const SHORT = 5;
const POINTS = IS_FULL ? CRASH_POINTS : shuffled(createRandom(), CRASH_POINTS).slice(0, SHORT);

let host: TestHost;
let crashFile: string;
beforeAll(async () => {
  crashFile = join(tmpdir(), `turnbox-crash-${process.pid}`);
  host = await startHost({ env: { TURNBOX_CRASH_FILE: crashFile } });
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await rm(crashFile, { force: true });
}, 120_000);

type Operation = "create" | "handover" | "seal" | "drop" | "rollback" | "fork" | "pause" | "resume" | "destroy";
const operationOf = (point: CrashPoint): Operation => point.slice(0, point.indexOf(".")) as Operation;

interface Scene {
  readonly sessionId: string;
  /** Turns that were answered, oldest first, with the digest of the files at that time. */
  readonly sealed: readonly { readonly snapshotId: string; readonly digest: string }[];
}

/** What is done when the crash comes, and again afterwards, as a caller without an answer does: with the same key. */
const REQUESTS: Readonly<Record<Operation, (scene: Scene) => { readonly method: string; readonly body: Json }>> = {
  create: ({ sessionId }) => ({
    method: "SessionService/CreateSession",
    body: { sessionId: `${sessionId}-new`, idempotencyKey: `${sessionId}-k` },
  }),
  handover: ({ sessionId }) => ({
    method: "SessionService/CreateSession",
    body: {
      sessionId: `${sessionId}-new`,
      idempotencyKey: `${sessionId}-k`,
      quotaBytes: "16777216",
      networkPolicy: { allowOutbound: true },
    },
  }),
  seal: ({ sessionId }) => ({ method: "SnapshotService/TurnComplete", body: { sessionId, turnKey: "k" } }),
  drop: ({ sessionId, sealed }) => ({
    method: "SnapshotService/DeleteSnapshot",
    body: { sessionId, snapshotId: sealed[0]!.snapshotId, idempotencyKey: "k" },
  }),
  rollback: ({ sessionId, sealed }) => ({
    method: "SnapshotService/RollbackSession",
    body: { sessionId, snapshotId: sealed[0]!.snapshotId, idempotencyKey: "k" },
  }),
  fork: ({ sessionId }) => ({
    method: "SessionService/ForkSession",
    body: { sessionId, idempotencyKey: "k", count: 2 },
  }),
  pause: ({ sessionId }) => ({ method: "SessionService/PauseSession", body: { sessionId, idempotencyKey: "k" } }),
  resume: ({ sessionId }) => ({ method: "SessionService/ResumeSession", body: { sessionId, idempotencyKey: "k" } }),
  destroy: ({ sessionId }) => ({
    method: "SessionService/DestroySession",
    body: { sessionId, idempotencyKey: `${sessionId}-k` },
  }),
};

async function setUp(point: CrashPoint): Promise<Scene> {
  const sessionId = point.replace("_", "-");
  await createSession(host, sessionId);
  const sealed: { snapshotId: string; digest: string }[] = [];
  for (const content of ["one", "two"]) {
    const script_ = `cd /workspace && echo ${content} > a && head -c 100000 /dev/urandom > ${content}.bin`;
    await script(host, sessionId, script_);
    const now = await digest(host, sessionId);
    sealed.push({ snapshotId: (await completeTurn(host, sessionId, content)).snapshotId, digest: now });
  }
  await script(host, sessionId, "echo three > /workspace/a");
  if (point === "destroy.shrunk") {
    await fork(host, sessionId, { childSessionIds: [`${sessionId}-child`], count: 1 });
  }
  if (operationOf(point) === "resume") await host.call("SessionService/PauseSession", { sessionId });
  if (operationOf(point) === "handover") await standReady();
  return { sessionId, sealed };
}

/** Has a session stand ready, which a hand-over needs and every other point can do without. */
async function standReady(): Promise<void> {
  await host.stop();
  await host.start({ TURNBOX_WARM_NETWORK_SESSIONS: "1" });
  await poll("a session to stand ready", async () => {
    const { warmSessions } = await host.call("HostService/GetStats");
    return warmSessions === 1 ? true : undefined;
  });
}

describe(`kill -9 of the host at (seed ${SEED})`, () => {
  it.each(POINTS)(
    "%s loses nothing that was acknowledged, repeats nothing, and leaves nothing behind",
    async (point) => {
      const operation = operationOf(point);
      const scene = await setUp(point);
      const { sessionId } = scene;
      const before = await getSession(host, sessionId);
      const { method, body } = REQUESTS[operation](scene);
      await writeFile(crashFile, point);
      const answered = await host.attempt(method, body);
      await host.death();
      await rm(crashFile);
      await host.start();

      await expectConsistent(host);
      if (operation === "destroy") {
        await checkDestroyed(point, scene);
      } else {
        await checkKept(operation, scene);
        const again = await repeat(method, body);
        if (answered !== undefined) expect(again).toMatchObject(withoutChanging(answered));
        expect(await repeat(method, body)).toEqual(again);
        await checkDoneOnce(operation, { scene, again, generation: before.generation });
      }
      await expectConsistent(host);
      await expectNothingLeft(host);
    },
    120_000,
  );
});

/** A snapshot that a drop has destroyed without a receipt is not found. */
async function repeat(method: string, body: Json): Promise<Json> {
  try {
    return await host.call(method, body);
  } catch (thrown) {
    if (method.endsWith("DeleteSnapshot") && thrown instanceof Refusal && thrown.reason === "SNAPSHOT_NOT_FOUND")
      return {};
    throw thrown;
  }
}

/** Ids and numbers of an answer; what a session is doing goes on. */
function withoutChanging(answer: Json): Json {
  const kept = ["snapshotId", "turnNumber", "undoSnapshotId", "generation"];
  return Object.fromEntries(Object.entries(answer).filter(([name]) => kept.includes(name)));
}

async function checkDestroyed(point: CrashPoint, { sessionId }: Scene): Promise<void> {
  const left = (await listSessions(host)).map((session) => session.sessionId);
  const children = point === "destroy.shrunk" ? [`${sessionId}-child`] : [];
  expect(left).toEqual(children);
  for (const child of children) expect(await script(host, child, "cat /workspace/a")).toBe("three\n");
  // Its id is free, and the session of that name is a new one.
  await createSession(host, sessionId);
  expect(await script(host, sessionId, "ls /workspace")).toBe("");
}

async function checkKept(operation: Operation, { sessionId, sealed }: Scene): Promise<void> {
  const { state } = await getSession(host, sessionId);
  if (state === "SESSION_STATE_PAUSED") await host.call("SessionService/ResumeSession", { sessionId });
  else expect(state).toBe("SESSION_STATE_ACTIVE");
  const now = await script(host, sessionId, "cat /workspace/a");
  expect(operation === "rollback" ? ["one\n", "three\n"] : ["three\n"]).toContain(now);
  const kept = operation === "drop" ? sealed.slice(1) : sealed;
  const ids = (await listSnapshots(host, sessionId)).map(({ snapshotId }) => snapshotId);
  for (const { snapshotId } of kept) expect(ids.filter((id) => id === snapshotId)).toHaveLength(1);
  const last = kept.at(-1)!;
  const { children } = await fork(host, sessionId, { snapshotId: last.snapshotId });
  expect(await digest(host, children[0]!.sessionId)).toBe(last.digest);
  await destroy(host, children[0]!.sessionId);
}

/** However often the caller asked, it happened once. */
async function checkDoneOnce(
  operation: Operation,
  { scene, again, generation }: { readonly scene: Scene; readonly again: Json; readonly generation: number },
): Promise<void> {
  const { sessionId } = scene;
  const snapshots = await listSnapshots(host, sessionId);
  const now = await getSession(host, sessionId);
  const ids = (await listSessions(host))
    .filter(({ state }) => state !== "SESSION_STATE_DESTROYING")
    .map((session) => session.sessionId);
  const turns = snapshots.flatMap(({ turnNumber }) => turnNumber ?? []).filter((number) => number > 0);
  expect(turns).toEqual([...new Set(turns)].sort((a, b) => a - b));
  switch (operation) {
    case "create":
    case "handover":
      expect(ids.filter((id) => id === `${sessionId}-new`)).toHaveLength(1);
      return;
    case "seal":
      expect(snapshots.filter(({ turnKey }) => turnKey === "k")).toMatchObject([{ snapshotId: again["snapshotId"] }]);
      expect(now).toMatchObject({ turnCount: 3 });
      return;
    case "drop":
      expect(turns).toEqual([2]);
      return;
    case "rollback":
      expect(now.generation).toBe(generation + 1);
      expect(snapshots.filter(({ kind }) => kind === "SNAPSHOT_KIND_UNDO")).toMatchObject([
        { snapshotId: again["undoSnapshotId"] },
      ]);
      expect(await digest(host, sessionId)).toBe(scene.sealed[0]!.digest);
      return;
    case "fork":
      expect(ids).toHaveLength(3);
      return;
    case "pause":
      expect(now.state).toBe("SESSION_STATE_PAUSED");
      return;
    case "resume":
      expect(now.state).toBe("SESSION_STATE_ACTIVE");
      expect(await bash(host, sessionId, "true")).toMatchObject({ exitCode: 0 });
      return;
    case "destroy":
      return;
  }
}
