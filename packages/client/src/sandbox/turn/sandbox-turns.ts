import { randomUUID } from "node:crypto";
import { SandboxError } from "@turnbox/core";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import {
  ProcessesPolicy,
  type Snapshot as WireSnapshot,
  type SnapshotKind as WireKind,
  TurnOutcome,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Sandbox } from "../sandbox.ts";
import { toNumber, toWireGeneration } from "../wire/number.ts";
import { toOptional } from "../wire/text.ts";
import type { OpenSandbox } from "../link/sandbox-link.ts";
import { newestUndo } from "./newest-undo.ts";
import type { Rollback, RollbackOptions } from "./turn-types.ts";
import { toSnapshot, WIRE_KINDS } from "./to-snapshot.ts";

const OUTCOMES = { succeeded: TurnOutcome.SUCCEEDED, failed: TurnOutcome.FAILED } as const;
const PROCESSES = { stop: ProcessesPolicy.STOP, refuse: ProcessesPolicy.REFUSE } as const;
const TOOLS = { wait: ToolsPolicy.WAIT, refuse: ToolsPolicy.REFUSE } as const;

export type SandboxTurns = Pick<
  Sandbox,
  "turn" | "turns" | "snapshot" | "snapshots" | "deleteSnapshot" | "rollback" | "undo"
>;

export function createTurns(calls: HostCalls): SandboxTurns {
  const { sessionId } = calls;
  const change = { timeoutMs: DEFAULT_TIMEOUT_MS.change };
  const list: Sandbox["snapshots"] = async ({ kinds = [], ...options } = {}) => {
    const wireKinds = kinds.map((kind) => WIRE_KINDS[kind]);
    const found = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, (sandbox, { signal }) =>
      listSnapshots(sandbox, { signal, kinds: wireKinds }),
    );
    return found.map(toSnapshot);
  };
  const rollBack = async (snapshotId: string, options: RollbackOptions): Promise<Rollback> => {
    const { expectedGeneration, processes = "stop", tools = "refuse", idempotencyKey = randomUUID() } = options;
    const request = {
      idempotencyKey,
      sessionId,
      snapshotId,
      processes: PROCESSES[processes],
      tools: TOOLS[tools],
      ...toWireGeneration(expectedGeneration),
    };
    const { undoSnapshotId, generation } = await calls.call({ options, ...change }, ({ host }, { signal }) =>
      host.snapshots.rollbackSession(request, { signal }),
    );
    return { undoSnapshotId, generation };
  };

  return {
    turn: async (options = {}) => {
      const { key = randomUUID(), outcome = "succeeded", expectedGeneration } = options;
      const request = { sessionId, turnKey: key, outcome: OUTCOMES[outcome], ...toWireGeneration(expectedGeneration) };
      const turn = await calls.call({ options, ...change }, ({ host }, { signal }) =>
        host.snapshots.turnComplete(request, { signal }),
      );
      if (turn.snapshotId !== "") rememberTurn(calls, turn.turnNumber, turn.snapshotId);
      return {
        number: turn.turnNumber,
        snapshotId: toOptional(turn.snapshotId),
        unchanged: turn.unchanged,
        generation: turn.generation,
        spaceUsedBytes: toNumber(turn.spaceUsedBytes),
        snapshot: turn.snapshot === undefined ? undefined : toSnapshot(turn.snapshot),
      };
    },
    turns: (options = {}) => list({ ...options, kinds: ["turn"] }),
    snapshots: list,
    snapshot: async (name, options = {}) => {
      const { idempotencyKey = randomUUID() } = options;
      const { snapshot } = await calls.call({ options, ...change }, ({ host }, { signal }) =>
        host.snapshots.createSnapshot({ idempotencyKey, sessionId, name }, { signal }),
      );
      return toSnapshot(snapshot);
    },
    deleteSnapshot: async (snapshotId, options = {}) => {
      const { idempotencyKey = randomUUID() } = options;
      await calls.call({ options, ...change }, ({ host }, { signal }) =>
        host.snapshots.deleteSnapshot({ idempotencyKey, sessionId, snapshotId }, { signal }),
      );
    },
    rollback: async (target, options = {}) =>
      await rollBack(typeof target === "object" ? target.id : await snapshotIdOf(calls, target, options), options),
    undo: async (options = {}) => await rollBack(newestUndo(await list({ ...options, kinds: ["undo"] })).id, options),
  };
}

/** The id of a turn's snapshot by the turn's number; an id is what it is. */
export async function snapshotIdOf(
  calls: HostCalls,
  reference: number | string,
  options: CallOptions,
): Promise<string> {
  if (typeof reference === "string") return reference;
  const known = recallTurn(calls, reference);
  if (known !== undefined) return known;
  const turns = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, (sandbox, { signal }) =>
    listSnapshots(sandbox, { signal, kinds: [WIRE_KINDS.turn] }),
  );
  const found = turns.find(({ turnNumber }) => turnNumber === reference);
  if (found !== undefined) return found.snapshotId;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", `there is no turn ${String(reference)}, or it is no longer kept`, {
    metadata: { turnNumber: String(reference) },
  });
}

const PAGE_SIZE = 1000;

/** All snapshots of a sandbox, or those of some kinds, oldest first. */
async function listSnapshots(
  { host, sessionId }: Pick<OpenSandbox, "host" | "sessionId">,
  { signal, kinds = [] }: { readonly signal: AbortSignal; readonly kinds?: readonly WireKind[] },
): Promise<readonly WireSnapshot[]> {
  const snapshots: WireSnapshot[] = [];
  let pageToken = "";
  do {
    const page = await host.snapshots.listSnapshots(
      { sessionId, page: { pageSize: PAGE_SIZE, pageToken }, kinds: [...kinds] },
      { signal, timeoutMs: DEFAULT_TIMEOUT_MS.read },
    );
    snapshots.push(...page.snapshots);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return snapshots;
}

/** Turns beyond these are looked up again, the earliest first. */
const MAX_TURNS = 1000;

const sealed = new WeakMap<HostCalls, Map<number, string>>();

/** Remembers the snapshot of a turn that the host has named. A number is never used twice, so it stays that one. */
function rememberTurn(calls: HostCalls, turnNumber: number, snapshotId: string): void {
  const turns = sealed.get(calls) ?? new Map<number, string>();
  sealed.set(calls, turns.set(turnNumber, snapshotId));
  const [first] = turns.keys();
  if (turns.size > MAX_TURNS && first !== undefined) turns.delete(first);
}

/** The snapshot of a turn; undefined if the host has to be asked. It may have been dropped since. */
function recallTurn(calls: HostCalls, turnNumber: number): string | undefined {
  return sealed.get(calls)?.get(turnNumber);
}
