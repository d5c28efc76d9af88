import { describe, expect, it, jest } from "@jest/globals";
import { ERROR_TABLE, SandboxError } from "@turnbox/core";
import fc from "fast-check";
import { HOME, SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import { until } from "./rig.suite.ts";
import type { Session } from "./session.ts";
import {
  NAMES,
  nextState,
  type Operation,
  type OperationKind,
  OUTCOMES,
  RACING_REASONS,
  type Settled,
} from "./phase-model.suite.ts";

jest.setTimeout(600_000);

const IDS = ["a", "b", "c"] as const;
const MAX_SESSIONS = 2;
/** The full form looks at other sequences each time; a failure prints its seed. */
const EFFORT = process.env["TURNBOX_FULL"] === "1" ? { numRuns: 60 } : { numRuns: 12, seed: 20_300_101 };
const CALL = { signal: SIGNAL };
/** Code 9 of Connect and gRPC. */
const FAILED_PRECONDITION = 9;

interface Step {
  readonly id: string;
  readonly operation: Operation;
}

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Operation>({ kind: "create" }) },
  {
    weight: 8,
    arbitrary: fc.constantFrom<Operation>(
      { kind: "get" },
      { kind: "pause" },
      { kind: "resume" },
      { kind: "turn" },
      { kind: "bash" },
      { kind: "repair" },
      { kind: "break" },
    ),
  },
  { weight: 2, arbitrary: fc.nat(3).map((target): Operation => ({ kind: "rollback", target })) },
  { weight: 1, arbitrary: fc.constant<Operation>({ kind: "destroy" }) },
);
const step: fc.Arbitrary<Step> = fc.record({ id: fc.constantFrom(...IDS), operation });

let writes = 0;

/** Does one operation as a caller would; returns the number of the turn if it sealed one. */
async function perform(test: TestHost, { id, operation }: Step): Promise<number | undefined> {
  const { host } = test;
  const expectedGeneration = undefined;
  if (operation.kind === "create") {
    await test.create({ sessionId: id });
    return undefined;
  }
  const session = host.registry.get(id, HOME);
  switch (operation.kind) {
    case "get":
      return undefined;
    case "pause":
      await host.pauseSession(
        session,
        { expectedGeneration, late: "kill", drainTimeoutMs: 2000, cause: "request" },
        CALL,
      );
      return undefined;
    case "resume":
      await host.resumeSession(session, { expectedGeneration }, CALL);
      return undefined;
    case "turn": {
      const turn = await host.completeTurn(session, { turnKey: "", outcome: "succeeded", expectedGeneration }, CALL);
      return turn.unchanged ? undefined : turn.turnNumber;
    }
    case "rollback":
      await rollBack(test, session, operation.target);
      return undefined;
    case "bash":
      writes += 1;
      await test.bash(session, `write /workspace/n ${writes}`);
      return undefined;
    case "repair":
      await host.repairSession(session, { idempotencyKey: "", payload: "" }, CALL);
      return undefined;
    case "break":
      await session.commit((row) => ({ ...row, phase: { kind: "failed", message: "broken by the test" } }));
      return undefined;
    case "destroy":
      await host.destroySession(session);
      return undefined;
  }
}

async function rollBack({ host }: TestHost, session: Session, target: number): Promise<void> {
  const snapshots = await host.records.call("listSnapshots", session.row.token);
  const snapshotId = snapshots[target % (snapshots.length + 1)]?.id ?? "none";
  const request = { idempotencyKey: "", payload: "", expectedGeneration: undefined, drainTimeoutMs: 2000 };
  try {
    await host.rollbackSession(session, { ...request, snapshotId, processes: "stop" }, CALL);
  } catch (thrown) {
    // A target that does not exist is refused and costs nothing (D1).
    if (snapshotId !== "none" || !(thrown instanceof SandboxError) || thrown.reason !== "SNAPSHOT_NOT_FOUND")
      throw thrown;
  }
}

/** What is known of a session from outside. */
interface Seen {
  readonly token: string;
  readonly generation: number;
  readonly turnCounter: number;
}

/** Looks at the host after each step and holds it to what it showed before. */
function createWitness() {
  const seen = new Map<string, Seen>();
  return {
    check: async ({ host }: TestHost): Promise<void> => {
      const sessions = host.registry.all();
      expect(sessions.length).toBeLessThanOrEqual(MAX_SESSIONS);
      const rows = await host.records.call("listSessions", null);
      expect(rows.map(({ token }) => token).toSorted()).toEqual(sessions.map(({ row }) => row.token).toSorted());
      for (const { row } of sessions) {
        expect(["active", "paused", "failed"]).toContain(row.phase.kind);
        const before = seen.get(row.id);
        if (before?.token === row.token) {
          expect(row.generation).toBeGreaterThanOrEqual(before.generation);
          expect(row.turnCounter).toBeGreaterThanOrEqual(before.turnCounter);
        }
        seen.set(row.id, row);
        const snapshots = await host.records.call("listSnapshots", row.token);
        const numbers = snapshots.flatMap(({ turnNumber }) => turnNumber ?? []);
        expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
        expect(Math.max(0, ...numbers)).toBeLessThanOrEqual(row.turnCounter);
      }
    },
  };
}

const stateOf = ({ host }: TestHost, id: string): Settled => {
  const kind = host.registry.find(id)?.row.phase.kind ?? "absent";
  if (kind === "creating" || kind === "destroying") throw new Error(`a session stays ${kind}`);
  return kind;
};

const settled = (test: TestHost): Promise<void> =>
  until(() => test.host.registry.all().every(({ row }) => row.phase.kind !== "destroying"));

async function reasonOf(work: Promise<unknown>): Promise<SandboxError | "ok"> {
  try {
    await work;
    return "ok";
  } catch (thrown) {
    if (thrown instanceof SandboxError) return thrown;
    throw thrown;
  }
}

/** A refusal because of the state says which state and which operation. */
function expectNamed(error: SandboxError, kind: OperationKind, state: Settled): void {
  const operation = NAMES[kind];
  if (operation === undefined || state === "absent") return;
  expect(ERROR_TABLE[error.reason].code).toBe(FAILED_PRECONDITION);
  expect(error.metadata).toMatchObject({ state, operation });
}

describe("the life of sessions", () => {
  it("follows the model, one operation after the other, also over restarts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(step, { freq: 12 }), { minLength: 5, maxLength: 25 }), async (steps) => {
        let test = await startTestHost({ maxSessions: MAX_SESSIONS });
        try {
          const witness = createWitness();
          for (const next of steps) {
            if (next === null) test = await test.restart();
            else await followModel(test, next);
            await witness.check(test);
          }
        } finally {
          await test[Symbol.asyncDispose]();
        }
      }),
      EFFORT,
    );
  });

  async function followModel(test: TestHost, next: Step): Promise<void> {
    const { registry } = test.host;
    const { kind } = next.operation;
    const state = stateOf(test, next.id);
    const generation = registry.find(next.id)?.row.generation ?? 0;
    const expected = expectedOutcome(test, kind, state);
    const outcome = await reasonOf(perform(test, next));
    if (outcome !== "ok") expectNamed(outcome, kind, state);
    expect(outcome === "ok" ? "ok" : outcome.reason).toBe(expected);
    await settled(test);
    expect(stateOf(test, next.id)).toBe(outcome === "ok" ? nextState(kind, state) : state);
    if (kind === "repair" && state === "failed") expect(registry.find(next.id)?.row.generation).toBe(generation + 1);
  }

  function expectedOutcome({ host }: TestHost, kind: OperationKind, state: Settled): string {
    const isFull = kind === "create" && state === "absent" && host.registry.size === MAX_SESSIONS;
    return isFull ? "MAX_SESSIONS_REACHED" : OUTCOMES[kind][state];
  }

  it("stays legal under operations at the same time: nothing is lost, nothing is used twice", async () => {
    const group = fc.array(step, { minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(group, { minLength: 3, maxLength: 10 }), async (groups) => {
        await using test = await startTestHost({ maxSessions: MAX_SESSIONS });
        const witness = createWitness();
        const turns = new Map<string, number[]>();
        for (const steps of groups) {
          await race(test, steps, turns);
          await settled(test);
          await witness.check(test);
        }
        for (const numbers of turns.values()) expect(new Set(numbers).size).toBe(numbers.length);
      }),
      EFFORT,
    );
  });

  /** Does all at once and checks what holds whatever the order. */
  async function race(test: TestHost, steps: readonly Step[], turns: Map<string, number[]>): Promise<void> {
    const { registry } = test.host;
    const tokenBefore = new Map(registry.all().map(({ row }) => [row.id, row.token]));
    const outcomes = await Promise.all(
      steps.map(async (next) => {
        const token = registry.find(next.id)?.row.token;
        const outcome = await reasonOf(
          perform(test, next).then((turn) => {
            if (turn !== undefined && token !== undefined) turns.set(token, [...(turns.get(token) ?? []), turn]);
          }),
        );
        return { ...next, outcome };
      }),
    );
    for (const { outcome } of outcomes) if (outcome !== "ok") expect(RACING_REASONS).toContain(outcome.reason);
    const destroyed = new Set(steps.filter(({ operation }) => operation.kind === "destroy").map(({ id }) => id));
    for (const [id, token] of tokenBefore) if (!destroyed.has(id)) expect(registry.find(id)?.row.token).toBe(token);
    const made = outcomes.filter(({ operation, outcome }) => operation.kind === "create" && outcome === "ok");
    for (const { id } of made) if (!destroyed.has(id)) expect(registry.find(id)).toBeDefined();
  }

  it("holds the limit exactly, whatever races for the last places", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(4), fc.integer({ min: 1, max: 8 }), async (limit, racing) => {
        await using test = await startTestHost({ maxSessions: limit + 1 });
        const outcomes = await Promise.all(Array.from({ length: racing }, () => reasonOf(test.create())));
        const refused = outcomes.filter((outcome) => outcome !== "ok");
        expect(outcomes.length - refused.length).toBe(Math.min(racing, limit + 1));
        for (const outcome of refused) expect(outcome).toMatchObject({ reason: "MAX_SESSIONS_REACHED" });
        expect(test.host.registry.size + test.host.registry.reserved).toBe(Math.min(racing, limit + 1));
      }),
      EFFORT,
    );
  });
});
