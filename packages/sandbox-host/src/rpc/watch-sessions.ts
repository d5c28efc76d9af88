import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { parseLabels } from "@turnbox/core";
import { closingSignalOf, principalOf } from "@turnbox/rpc/server";
import {
  SessionEventKind,
  type SessionService,
  type Session as WireSession,
  type WatchSessionsResponse,
  WatchSessionsResponseSchema,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { Session } from "../session/session.ts";
import { type Watched, watch } from "../session/watch.ts";
import { toWireSession } from "./convert.ts";
import type { Host } from "./host.ts";
import { show, USAGE_TIMEOUT_MS } from "./show.ts";

const KINDS = {
  existing: SessionEventKind.EXISTING,
  created: SessionEventKind.CREATED,
  changed: SessionEventKind.CHANGED,
  sealed: SessionEventKind.SEALED,
  destroyed: SessionEventKind.DESTROYED,
  keepalive: SessionEventKind.KEEPALIVE,
  overflow: SessionEventKind.OVERFLOW,
} as const satisfies Record<Watched["kind"], SessionEventKind>;

/** WatchSessions: ends when the client goes, and when the host begins to close. */
export function watchSessions(host: Host): ServiceImpl<typeof SessionService>["watchSessions"] {
  return async function* (request, context): AsyncGenerator<WatchSessionsResponse> {
    const signal = AbortSignal.any([context.signal, closingSignalOf(context), host.stopping]);
    const labels = parseLabels("selector", request.selector?.matchLabels ?? {});
    const showFirst = await showAll(host);
    for await (const event of watch(host, { caller: principalOf(context), labels }, { signal })) {
      const common = { kind: KINDS[event.kind], at: timestampFromMs(Math.round(event.atMs)) };
      yield create(
        WatchSessionsResponseSchema,
        "session" in event ? { ...common, session: await showIn(event.kind, event.session) } : common,
      );
    }

    async function showIn(kind: Watched["kind"], session: Session): Promise<WireSession> {
      if (kind === "existing") return showFirst(session);
      // Nothing is left of it that could be asked for.
      if (kind === "destroyed") return toWireSession(session, { snapshotCount: 0, spaceUsedBytes: 0 });
      return await show(host, session);
    }
  };
}

/** Asks for the facts of all sessions at once. */
async function showAll(host: Host): Promise<(session: Session) => WireSession> {
  const [used, counts] = await Promise.all([
    host.storage
      .usedBytesOfAll({ signal: AbortSignal.timeout(USAGE_TIMEOUT_MS) })
      .catch(() => new Map<string, number>()),
    host.records.call("countSnapshots", null),
  ]);
  return (session) => {
    const { token } = session.row;
    return toWireSession(session, { snapshotCount: counts[token] ?? 0, spaceUsedBytes: used.get(token) ?? 0 });
  };
}
