import { hasReason, SandboxError } from "@turnbox/core";
import type { Sandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { HostClients, TurnboxClients } from "../../client.ts";
import type { Endpoint } from "../../connection.ts";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { isFullId, matchSandbox } from "./sandbox-reference.ts";

const PAGE_SIZE = 1000;

export interface SandboxList {
  readonly sandboxes: readonly Sandbox[];
  /** Instances whose sandboxes may be missing. */
  readonly unreachableInstances: readonly string[];
}

/** All pages of the list. */
export async function listSandboxes(
  server: TurnboxClients,
  { labels = {}, signal }: { readonly labels?: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<SandboxList> {
  const sandboxes: Sandbox[] = [];
  const unreachable = new Set<string>();
  let pageToken = "";
  do {
    const page = await server.sandboxes.listSandboxes(
      { page: { pageSize: PAGE_SIZE, pageToken }, selector: { matchLabels: { ...labels } } },
      { signal, timeoutMs: CALL_MS.read },
    );
    sandboxes.push(...page.sandboxes);
    for (const instance of page.unreachableInstances) unreachable.add(instance);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return { sandboxes, unreachableInstances: [...unreachable] };
}

/**
 * The full id of what the user typed: a full id, a unique prefix of the session part, or a name. What is not found while
 * instances do not answer may be on one of them: that is `HOST_UNREACHABLE`.
 */
export async function resolveSandbox(
  server: TurnboxClients,
  reference: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<string> {
  if (isFullId(reference)) return reference;
  const { sandboxes, unreachableInstances } = await listSandboxes(server, { signal });
  try {
    return matchSandbox(reference, sandboxes);
  } catch (thrown) {
    if (unreachableInstances.length === 0 || !hasReason(thrown, "SANDBOX_NOT_FOUND")) throw thrown;
    const silent = unreachableInstances.join(", ");
    throw new SandboxError("HOST_UNREACHABLE", `${thrown.message} on the hosts that answer; not answering: ${silent}`, {
      admitted: "no",
      metadata: { reference, instances: unreachableInstances.join(",") },
    });
  }
}

/** A sandbox on its host. Its user disposes of it. */
export interface OpenSandbox extends Disposable {
  readonly sandboxId: string;
  readonly sessionId: string;
  readonly host: HostClients;
}

/** Asks the server where the sandbox is, and connects to its host with a token for this sandbox. */
export async function openSandbox(
  server: TurnboxClients,
  reference: string,
  invocation: Pick<Invocation, "host" | "signal">,
): Promise<OpenSandbox> {
  const sandboxId = await resolveSandbox(server, reference, invocation);
  const access = await server.sandboxes.connectSandbox(
    { sandboxId },
    { signal: invocation.signal, timeoutMs: CALL_MS.read },
  );
  const endpoint: Endpoint = { url: access.url, token: access.token };
  const host = invocation.host(endpoint);
  return { sandboxId, sessionId: access.sessionId, host, [Symbol.dispose]: host.close };
}
