import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseEnum, parseKey } from "@turnbox/core";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import {
  CreateSnapshotRequestSchema,
  DeleteSnapshotRequestSchema,
  ProcessesPolicy,
  RestoreSnapshotRequestSchema,
  RollbackSessionRequestSchema,
  SnapshotKind as WireKind,
  type SnapshotService,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { SnapshotKind } from "../record/row.ts";
import type { SessionDefaults } from "../session/ceilings.ts";
import type { Session } from "../session/session.ts";
import type { SessionUsage } from "../session/session-usage.ts";
import type { CompleteTurn } from "../turn/complete.ts";
import type { DeleteSnapshot } from "../turn/delete.ts";
import type { ListSnapshots } from "../turn/list-snapshots.ts";
import type { RestoreSnapshot } from "../turn/restore.ts";
import type { RollbackSession } from "../turn/rollback.ts";
import type { CreateSnapshot } from "../turn/snapshot.ts";
import { findSession, signalOf, type Stops, type UsesSessions, useSession } from "./call.ts";
import { toWireSnapshot, TURN_OUTCOMES } from "./convert.ts";
import { diffSnapshots, type DiffSnapshotsParts } from "./diff-snapshots.ts";
import { parseDrain } from "./duration.ts";
import { keyedRequest } from "./keyed-request.ts";
import { pageOf } from "./paging.ts";
import { show } from "./show.ts";

/** What SnapshotService needs. */
export interface SnapshotServiceParts extends Stops, UsesSessions, DiffSnapshotsParts {
  readonly usage: Pick<SessionUsage, "of" | "recentSpace">;
  readonly completeTurn: CompleteTurn;
  readonly listSnapshots: ListSnapshots;
  readonly createSnapshot: CreateSnapshot;
  readonly deleteSnapshot: DeleteSnapshot;
  readonly restoreSnapshot: RestoreSnapshot;
  readonly rollbackSession: RollbackSession;
  readonly defaults: Pick<SessionDefaults, "pauseDrainTimeoutMs" | "snapshotPrefix">;
}

type Handlers = ServiceImpl<typeof SnapshotService>;

const KINDS: ReadonlyMap<number, SnapshotKind> = new Map([
  [WireKind.TURN, "turn"],
  [WireKind.NAMED, "named"],
  [WireKind.TOOL, "tool"],
  [WireKind.UNDO, "undo"],
]);

const PROCESSES: ReadonlyMap<number, "stop" | "refuse"> = new Map([
  [ProcessesPolicy.UNSPECIFIED, "stop"],
  [ProcessesPolicy.STOP, "stop"],
  [ProcessesPolicy.REFUSE, "refuse"],
]);

const TOOLS: ReadonlyMap<number, "wait" | "refuse"> = new Map([
  [ToolsPolicy.UNSPECIFIED, "refuse"],
  [ToolsPolicy.WAIT, "wait"],
  [ToolsPolicy.REFUSE, "refuse"],
]);

/** SnapshotService: parse, call the use case, convert. */
export function createSnapshotService(host: SnapshotServiceParts): Partial<Handlers> {
  return {
    turnComplete: turnComplete(host),
    listSnapshots: listSnapshots(host),
    createSnapshot: createSnapshot(host),
    deleteSnapshot: deleteSnapshot(host),
    restoreSnapshot: restoreSnapshot(host),
    diffSnapshots: diffSnapshots(host),
    rollbackSession: rollbackSession(host),
  };
}

const factsOf = ({ defaults }: SnapshotServiceParts, { row }: Session) => ({
  headParent: row.parentSnapshot,
  prefix: defaults.snapshotPrefix,
});

function turnComplete(host: SnapshotServiceParts): Handlers["turnComplete"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    let space: Promise<number> | undefined;
    const turn = await host.completeTurn(
      session,
      {
        turnKey: parseKey("turn_key", request.turnKey),
        outcome: parseEnum("outcome", request.outcome, TURN_OUTCOMES),
        expectedGeneration: request.expectedGeneration,
      },
      {
        signal: signalOf(host, request.turnKey, context),
        beside: () => {
          space = host.usage.recentSpace(session);
        },
      },
    );
    const { snapshot, turnNumber } = turn;
    return {
      snapshotId: snapshot?.id ?? "",
      turnNumber,
      unchanged: turn.unchanged,
      spaceUsedBytes: BigInt(await (space ?? host.usage.recentSpace(session))),
      generation: session.row.generation,
      ...(snapshot === null ? {} : { snapshot: toWireSnapshot(snapshot, factsOf(host, session)) }),
    };
  };
}

function listSnapshots(host: SnapshotServiceParts): Handlers["listSnapshots"] {
  return async (request, context) => {
    const session = findSession(host, request.sessionId, context);
    const kinds = new Set(request.kinds.map((kind) => parseEnum("kinds", kind, KINDS)));
    const listed = await host.listSnapshots(session, kinds, { signal: context.signal });
    const page = pageOf(listed, request.page, {
      listName: `snapshots of ${session.row.token}`,
      keyOf: ({ row }) => row.name,
    });
    return {
      snapshots: page.entries.map(({ row, ...stored }) =>
        toWireSnapshot(row, { ...factsOf(host, session), ...stored }),
      ),
      page: { nextPageToken: page.nextPageToken },
    };
  };
}

function createSnapshot(host: SnapshotServiceParts): Handlers["createSnapshot"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const snapshot = await host.createSnapshot(
      session,
      {
        ...keyedRequest(CreateSnapshotRequestSchema, request),
        title: parseTitle(request.name),
        expectedGeneration: request.expectedGeneration,
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    return { snapshot: toWireSnapshot(snapshot, factsOf(host, session)) };
  };
}

function deleteSnapshot(host: SnapshotServiceParts): Handlers["deleteSnapshot"] {
  return async (request, context) => {
    const deletion = { ...keyedRequest(DeleteSnapshotRequestSchema, request), snapshotId: request.snapshotId };
    await host.deleteSnapshot(useSession(host, request.sessionId, context), deletion, {
      signal: signalOf(host, request.idempotencyKey, context),
    });
    return {};
  };
}

function restoreSnapshot(host: SnapshotServiceParts): Handlers["restoreSnapshot"] {
  return async (request, context) => {
    const restored = await host.restoreSnapshot(
      findSession(host, request.sessionId, context),
      {
        ...keyedRequest(RestoreSnapshotRequestSchema, request),
        snapshotId: request.snapshotId,
        newSessionId: request.newSessionId,
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    return { session: await show(host, restored) };
  };
}

function rollbackSession(host: SnapshotServiceParts): Handlers["rollbackSession"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const wait = parseDrain("drain_timeout", request.drainTimeout) ?? host.defaults.pauseDrainTimeoutMs;
    let space: Promise<number> | undefined;
    const result = await host.rollbackSession(
      session,
      {
        ...keyedRequest(RollbackSessionRequestSchema, request),
        snapshotId: request.snapshotId,
        expectedGeneration: request.expectedGeneration,
        drainTimeoutMs: parseEnum("tools", request.tools, TOOLS) === "refuse" ? 0 : wait,
        processes: parseEnum("processes", request.processes, PROCESSES),
      },
      {
        signal: signalOf(host, request.idempotencyKey, context),
        onSealed: () => {
          space = host.usage.recentSpace(session);
        },
      },
    );
    return {
      session: await show(host, session, space),
      undoSnapshotId: result.undoSnapshotId,
      generation: result.generation,
    };
  };
}

const MAX_TITLE_BYTES = 256;

/** A name for people: text that a terminal can show on one line. */
function parseTitle(name: string): string {
  if (!name.isWellFormed() || /\p{Cc}/u.test(name) || Buffer.byteLength(name) > MAX_TITLE_BYTES)
    throw invalidArgument("name", `must be text without control characters of at most ${MAX_TITLE_BYTES} bytes`);
  return name;
}
