import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseEnum, parseKey } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
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
import type { Session } from "../session/session.ts";
import { canonicalRequest } from "./canonical.ts";
import { toWireSnapshot, TURN_OUTCOMES } from "./convert.ts";
import { diffSnapshots } from "./diff-snapshots.ts";
import type { Host } from "./host.ts";
import { parseDrain } from "./drain.ts";
import { pageOf } from "./paging.ts";
import { show } from "./show.ts";
import { signalOf } from "./signal.ts";

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
export function createSnapshotService(host: Host): Partial<ServiceImpl<typeof SnapshotService>> {
  const find = (id: string, context: HandlerContext): Session => host.registry.get(id, principalOf(context));
  /** For what changes the session; reading does not count as using it. */
  const use = (id: string, context: HandlerContext): Session => {
    const session = find(id, context);
    host.activity.touch(session);
    return session;
  };

  const factsOf = ({ row }: Session) => ({ headParent: row.parentSnapshot, prefix: host.defaults.snapshotPrefix });

  return {
    turnComplete: async (request, context) => {
      const session = use(request.sessionId, context);
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
            space = host.space.recent(session);
          },
        },
      );
      const { snapshot, turnNumber } = turn;
      return {
        snapshotId: snapshot?.id ?? "",
        turnNumber,
        unchanged: turn.unchanged,
        spaceUsedBytes: BigInt(await (space ?? host.space.recent(session))),
        generation: session.row.generation,
        ...(snapshot === null ? {} : { snapshot: toWireSnapshot(snapshot, factsOf(session)) }),
      };
    },

    listSnapshots: async (request, context) => {
      const session = find(request.sessionId, context);
      const kinds = new Set(request.kinds.map((kind) => parseEnum("kinds", kind, KINDS)));
      const [rows, stored] = await Promise.all([
        host.records.call("listSnapshots", session.row.token),
        host.storage.capabilities.snapshots === "supported"
          ? host.storage.listSnapshots(session.row.token, { signal: context.signal })
          : [],
      ]);
      const byName = new Map(stored.map((info) => [info.name, info]));
      const wanted = rows.filter(({ kind }) => kinds.size === 0 || kinds.has(kind));
      const page = pageOf(wanted, request.page, {
        listName: `snapshots of ${session.row.token}`,
        keyOf: ({ name }) => name,
      });
      return {
        snapshots: page.entries.map((row) => {
          const info = byName.get(row.name);
          return toWireSnapshot(row, { ...factsOf(session), ...(info === undefined ? {} : { stored: info }) });
        }),
        page: { nextPageToken: page.nextPageToken },
      };
    },

    createSnapshot: async (request, context) => {
      const session = use(request.sessionId, context);
      const snapshot = await host.createSnapshot(
        session,
        {
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(CreateSnapshotRequestSchema, { ...request, idempotencyKey: "" }),
          title: parseTitle(request.name),
          expectedGeneration: request.expectedGeneration,
        },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { snapshot: toWireSnapshot(snapshot, factsOf(session)) };
    },

    deleteSnapshot: async (request, context) => {
      const deletion = {
        idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
        payload: canonicalRequest(DeleteSnapshotRequestSchema, { ...request, idempotencyKey: "" }),
        snapshotId: request.snapshotId,
      };
      await host.deleteSnapshot(use(request.sessionId, context), deletion, {
        signal: signalOf(host, request.idempotencyKey, context),
      });
      return {};
    },

    restoreSnapshot: async (request, context) => {
      const restored = await host.restoreSnapshot(
        find(request.sessionId, context),
        {
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(RestoreSnapshotRequestSchema, { ...request, idempotencyKey: "" }),
          snapshotId: request.snapshotId,
          newSessionId: request.newSessionId,
        },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { session: await show(host, restored) };
    },

    diffSnapshots: diffSnapshots(host),

    rollbackSession: async (request, context) => {
      const session = use(request.sessionId, context);
      const wait = parseDrain("drain_timeout", request.drainTimeout) ?? host.defaults.pauseDrainTimeoutMs;
      let space: Promise<number> | undefined;
      const result = await host.rollbackSession(
        session,
        {
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(RollbackSessionRequestSchema, { ...request, idempotencyKey: "" }),
          snapshotId: request.snapshotId,
          expectedGeneration: request.expectedGeneration,
          drainTimeoutMs: parseEnum("tools", request.tools, TOOLS) === "refuse" ? 0 : wait,
          processes: parseEnum("processes", request.processes, PROCESSES),
        },
        {
          signal: signalOf(host, request.idempotencyKey, context),
          onSealed: () => {
            space = host.space.recent(session);
          },
        },
      );
      return {
        session: await show(host, session, space),
        undoSnapshotId: result.undoSnapshotId,
        generation: result.generation,
      };
    },
  };
}

const MAX_TITLE_BYTES = 256;

/** A name for people: text that a terminal can show on one line. */
function parseTitle(name: string): string {
  if (!name.isWellFormed() || /\p{Cc}/u.test(name) || Buffer.byteLength(name) > MAX_TITLE_BYTES)
    throw invalidArgument("name", `must be text without control characters of at most ${MAX_TITLE_BYTES} bytes`);
  return name;
}
