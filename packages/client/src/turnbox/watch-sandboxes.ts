import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import { SessionEventKind } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { FleetHost, OperatorHosts } from "../fleet/operator-hosts.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { createBell } from "./bell.ts";
import type { SandboxList } from "./turnbox-types.ts";

/** How long to wait for word from a host before looking all the same. */
const LOOK_EVERY_MS = 1000;
/** A busy host may send much; the list is asked for this often at most. */
const PAUSE_MS = 100;

export interface SandboxWatch {
  readonly operator: OperatorHosts;
  readonly clock: Clock;
  /** Asks for the list. */
  readonly list: (signal: AbortSignal) => Promise<SandboxList>;
  readonly signal: AbortSignal | undefined;
}

/**
 * Looks at the list without end: once a second, and at once when a host says that something happened. Only hosts on the
 * server's own machine are listened to, if they know its token; for the rest the second has to do.
 */
export async function* watchSandboxes({
  operator,
  clock,
  list,
  signal: outer,
}: SandboxWatch): AsyncGenerator<SandboxList> {
  const ending = new AbortController();
  const signal = outer === undefined ? ending.signal : AbortSignal.any([outer, ending.signal]);
  const bell = createBell();
  try {
    for (const host of await listenable(operator, signal))
      listen(host, { operator, signal, ring: bell.ring }).catch(bell.ring);
    for (;;) {
      bell.reset();
      yield await list(signal);
      await clock.sleep(PAUSE_MS, { signal });
      await Promise.race([bell.rung(), clock.sleep(LOOK_EVERY_MS - PAUSE_MS, { signal })]);
    }
  } finally {
    ending.abort();
  }
}

/** Whoever may not ask for the hosts does without them. */
async function listenable(operator: OperatorHosts, signal: AbortSignal): Promise<readonly FleetHost[]> {
  try {
    const hosts = await operator.list({ signal, timeoutMs: DEFAULT_TIMEOUT_MS.read });
    return hosts.filter(operator.isTrusted);
  } catch (thrown) {
    if (hasReason(thrown, "PERMISSION_DENIED", "UNIMPLEMENTED")) return [];
    throw SandboxError.from(thrown);
  }
}

interface Listening {
  readonly operator: OperatorHosts;
  readonly signal: AbortSignal;
  readonly ring: () => void;
}

/** Rings until the host has no more to say. Never fails: without it the list is looked at all the same. */
async function listen(at: FleetHost, { operator, signal, ring }: Listening): Promise<void> {
  using host = operator.open(at);
  try {
    for await (const { kind } of host.sessions.watchSessions({}, { signal })) {
      if (kind !== SessionEventKind.EXISTING && kind !== SessionEventKind.KEEPALIVE) ring();
    }
  } catch {
    // The next look finds out what is wrong with the host, if anything is.
  }
}
