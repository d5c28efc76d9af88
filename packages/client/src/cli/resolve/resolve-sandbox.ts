import type { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import type { TurnboxClients } from "../../client.ts";
import type { Endpoint } from "../../connection.ts";
import type { OpenSandbox } from "../../sandbox/link/sandbox-link.ts";
import { resolveSandbox } from "../../turnbox/find-sandbox.ts";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";

export type { OpenSandbox } from "../../sandbox/link/sandbox-link.ts";
export { listSandboxes, resolveSandbox } from "../../turnbox/find-sandbox.ts";

/**
 * Asks the server where the sandbox is, and connects to its host with a token for this sandbox that allows these verbs, the
 * server's choice where none are given. Its user disposes of it.
 */
export async function openSandbox(
  server: TurnboxClients,
  reference: string,
  invocation: Pick<Invocation, "host" | "signal">,
  verbs: readonly Verb[] = [],
): Promise<OpenSandbox> {
  const sandboxId = await resolveSandbox(server, reference, invocation);
  const access = await server.sandboxes.connectSandbox(
    { sandboxId, verbs: [...verbs] },
    { signal: invocation.signal, timeoutMs: CALL_MS.read },
  );
  const endpoint: Endpoint = { url: access.url, token: access.token };
  const host = invocation.host(endpoint);
  return { sandboxId, sessionId: access.sessionId, host, [Symbol.dispose]: host.close };
}
