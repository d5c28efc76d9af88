import { hasReason, SandboxError } from "@turnbox/core";
import { SessionEventKind } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { TurnboxClients } from "../../client.ts";
import { isTrustedHost } from "../../config.ts";
import type { Invocation } from "../invocation.ts";
import { listSandboxes } from "../resolve/resolve-sandbox.ts";
import { type FleetHost, listHosts } from "../resolve/trusted-hosts.ts";
import { toSandboxView } from "../sandbox-view.ts";
import { createBell } from "./bell.ts";
import type { Look } from "./sandbox-events.ts";

/** How long to wait for word from a host before looking all the same. */
const LOOK_EVERY_MS = 1000;
/** A busy host may send much; the list is asked for this often at most. */
const PAUSE_MS = 100;

/**
 * Looks at the list for ever: once a second, and at once when a host says that something happened. Only hosts on the
 * server's own machine are listened to, where they know its token; for the rest the second has to do.
 */
export async function* watchSandboxes(
  server: TurnboxClients,
  labels: Readonly<Record<string, string>>,
  invocation: Invocation,
): AsyncGenerator<Look> {
  const { clock } = invocation.surroundings;
  const ending = new AbortController();
  const signal = AbortSignal.any([invocation.signal, ending.signal]);
  const bell = createBell();
  try {
    for (const host of await listenable(server, signal))
      listen(host, { server, invocation, signal, ring: bell.ring }).catch(bell.ring);
    for (;;) {
      bell.reset();
      const { sandboxes, unreachableInstances } = await listSandboxes(server, { labels, signal });
      yield { sandboxes: sandboxes.map(toSandboxView), unreachableInstances };
      await clock.sleep(PAUSE_MS, { signal });
      await Promise.race([bell.rung(), clock.sleep(LOOK_EVERY_MS - PAUSE_MS, { signal })]);
    }
  } finally {
    ending.abort();
  }
}

/** Whoever may not ask for the hosts does without them. */
async function listenable(server: TurnboxClients, signal: AbortSignal): Promise<readonly FleetHost[]> {
  try {
    const hosts = await listHosts(server, { signal });
    return hosts.filter(({ url }) => isTrustedHost(url, server.endpoint));
  } catch (thrown) {
    if (hasReason(thrown, "PERMISSION_DENIED", "UNIMPLEMENTED")) return [];
    throw SandboxError.from(thrown);
  }
}

interface Listening {
  readonly server: TurnboxClients;
  readonly invocation: Invocation;
  readonly signal: AbortSignal;
  readonly ring: () => void;
}

/** Rings until the host has no more to say. Never fails: without it the list is looked at all the same. */
async function listen({ url }: FleetHost, { server, invocation, signal, ring }: Listening): Promise<void> {
  using host = invocation.host({ url, token: server.endpoint.token });
  try {
    for await (const { kind } of host.sessions.watchSessions({}, { signal })) {
      if (kind !== SessionEventKind.EXISTING && kind !== SessionEventKind.KEEPALIVE) ring();
    }
  } catch {
    // The next look finds out what is wrong with the host, if anything is.
  }
}
