import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { type Clock, parseLabels } from "@turnbox/core";
import { closingSignalOf, principalOf } from "@turnbox/rpc/server";
import {
  SessionEventKind,
  type SessionService,
  type WatchSessionsResponse,
  WatchSessionsResponseSchema,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { SessionEvents } from "../session/events.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { NO_FACTS, type SessionFacts, type SessionUsage } from "../session/session-usage.ts";
import { type Watched, watch } from "../session/watch.ts";
import type { Stops } from "./call.ts";
import { toWireSession } from "./convert.ts";

export interface WatchSessionsParts extends Stops {
  readonly registry: Pick<Registry, "list">;
  readonly events: Pick<SessionEvents, "listen">;
  readonly clock: Clock;
  readonly usage: Pick<SessionUsage, "of" | "ofAll">;
}

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
export function watchSessions(host: WatchSessionsParts): ServiceImpl<typeof SessionService>["watchSessions"] {
  return async function* (request, context): AsyncGenerator<WatchSessionsResponse> {
    const signal = AbortSignal.any([context.signal, closingSignalOf(context), host.stopping]);
    const labels = parseLabels("selector", request.selector?.matchLabels ?? {});
    const factsOfExisting = await host.usage.ofAll();
    for await (const event of watch(host, { caller: principalOf(context), labels }, { signal })) {
      const common = { kind: KINDS[event.kind], at: timestampFromMs(Math.round(event.atMs)) };
      if ("session" in event) {
        const { kind, session } = event;
        const facts = kind === "existing" ? factsOfExisting(session) : await factsAfter(kind, session);
        yield create(WatchSessionsResponseSchema, { ...common, session: toWireSession(session, facts) });
      } else yield create(WatchSessionsResponseSchema, common);
    }
  };

  function factsAfter(kind: Watched["kind"], session: Session): Promise<SessionFacts> | SessionFacts {
    return kind === "destroyed" ? NO_FACTS : host.usage.of(session);
  }
}
