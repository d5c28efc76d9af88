import { randomUUID } from "node:crypto";
import { type Clock, createDeadline, hasReason, SandboxError } from "@turnbox/core";
import type { HostClients } from "../client.ts";
import type { Endpoint } from "../connection.ts";
import type { OperatorHosts } from "../fleet/operator-hosts.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { ServerLink } from "../sandbox/link/server-link.ts";
import type { DestroyAndWaitOptions, Residue } from "./turnbox-types.ts";

const WAIT_MS = 15_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;

export interface Destroyer {
  readonly server: ServerLink;
  readonly operator: OperatorHosts;
  readonly clock: Clock;
  readonly host: (endpoint: Endpoint) => HostClients;
}

/** Destroys a sandbox and waits until its host has removed what is left of it. */
export async function destroyAndWait(
  destroyer: Destroyer,
  sandboxId: string,
  options: DestroyAndWaitOptions,
): Promise<Residue> {
  const { server, operator, clock } = destroyer;
  const { idempotencyKey = randomUUID(), waitMs = WAIT_MS, signal, timeoutMs, onDestroyed } = options;
  const own = signal === undefined ? {} : { signal };
  // Asked for first: a destroyed sandbox cannot be looked up.
  const way = await findWay(destroyer, sandboxId, own);
  await server.call((to, call) => to.sandboxes.destroySandbox({ idempotencyKey, sandboxId }, { signal: call.signal }), {
    timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS.change,
    ...own,
  });
  onDestroyed?.();
  if (way === undefined) return "unknown";
  using session = way.clients;
  // The host's health is not for a sandbox's token; a host on the server's own machine knows the server's.
  using health = operator.isTrusted(session.endpoint) ? operator.open(session.endpoint) : undefined;
  const look = (call: Look): Promise<Residue> => lookForResidue({ sessionId: way.sessionId, session, health }, call);
  return await waitForResidue(look, { clock, waitMs, ...own });
}

interface Way {
  readonly sessionId: string;
  readonly clients: HostClients;
}

/** A host that does not answer, or a sandbox that is half gone, does not prevent its destruction. */
async function findWay(
  { server, host }: Destroyer,
  sandboxId: string,
  own: { readonly signal?: AbortSignal },
): Promise<Way | undefined> {
  try {
    const { url, token, sessionId } = await server.call(
      (to, { signal }) => to.sandboxes.connectSandbox({ sandboxId }, { signal }),
      { timeoutMs: DEFAULT_TIMEOUT_MS.read, repeat: "never", ...own },
    );
    return { sessionId, clients: host({ url, token }) };
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED", "SERVER_UNREACHABLE", "UNAUTHENTICATED")) throw thrown;
    return undefined;
  }
}

interface Look {
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly clock: Clock;
  readonly waitMs: number;
  readonly signal?: AbortSignal;
}

/** Looks until the host no longer counts the session among those it removes, or the time has passed. */
async function waitForResidue(
  look: (call: Look) => Promise<Residue>,
  { clock, waitMs, signal: outer }: Waiting,
): Promise<Residue> {
  const endMs = clock.monotonicMs() + waitMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const ms = Math.ceil(endMs - clock.monotonicMs());
    if (ms <= 0) return "pending";
    using deadline = createDeadline({ clock, ms, ...(outer && { signal: outer }) });
    const residue = await look({ signal: deadline.signal });
    if (residue !== "pending") return residue;
    try {
      await clock.sleep(pauseMs, { signal: deadline.signal });
    } catch (thrown) {
      if (outer?.aborted === true) throw SandboxError.from(thrown);
    }
  }
}

interface Question {
  readonly sessionId: string;
  /** Holds the session's own token. */
  readonly session: HostClients;
  /** Holds a token that may read the host's health, if there is one. */
  readonly health: HostClients | undefined;
}

async function lookForResidue({ sessionId, session, health }: Question, look: Look): Promise<Residue> {
  try {
    if (health !== undefined) {
      const { backgroundDestroys } = await health.host.healthCheck({}, look);
      return backgroundDestroys.some((destroy) => destroy.sessionId === sessionId) ? "pending" : "gone";
    }
  } catch (thrown) {
    if (!hasReason(thrown, "UNAUTHENTICATED", "PERMISSION_DENIED")) return afterFailure(thrown);
  }
  try {
    await session.sessions.getSession({ sessionId }, look);
    return "pending";
  } catch (thrown) {
    return hasReason(thrown, "SESSION_NOT_FOUND") ? "gone" : afterFailure(thrown);
  }
}

function afterFailure(thrown: unknown): Residue {
  if (hasReason(thrown, "CANCELLED")) throw thrown;
  return hasReason(thrown, "DEADLINE_EXCEEDED") ? "pending" : "unknown";
}
