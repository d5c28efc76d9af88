import { hasReason, SandboxError } from "@turnbox/core";
import type { Sandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { TurnboxClients } from "../client.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { isFullId, matchSandbox } from "../sandbox/sandbox-reference.ts";

const PAGE_SIZE = 1000;

export interface FoundSandboxes {
  readonly sandboxes: readonly Sandbox[];
  /** Instances whose sandboxes may be missing. */
  readonly unreachableInstances: readonly string[];
}

/** All pages of the list. */
export async function listSandboxes(
  server: TurnboxClients,
  { labels = {}, signal }: { readonly labels?: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<FoundSandboxes> {
  const sandboxes: Sandbox[] = [];
  const unreachable = new Set<string>();
  let pageToken = "";
  do {
    const page = await server.sandboxes.listSandboxes(
      { page: { pageSize: PAGE_SIZE, pageToken }, selector: { matchLabels: { ...labels } } },
      { signal, timeoutMs: DEFAULT_TIMEOUT_MS.read },
    );
    sandboxes.push(...page.sandboxes);
    for (const instance of page.unreachableInstances) unreachable.add(instance);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return { sandboxes, unreachableInstances: [...unreachable] };
}

/**
 * The full id of what a person typed: a full id, a unique prefix of the session part, or a name. The server is asked by the name
 * first; all sandboxes are listed only if it knows nothing of that name, which may be a prefix. What is not found while instances
 * do not answer may be on one of them: that is `HOST_UNREACHABLE`.
 */
export async function resolveSandbox(
  server: TurnboxClients,
  reference: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<string> {
  if (isFullId(reference)) return reference;
  const named = await findByName(server, reference, { signal });
  if (named !== undefined) return named;
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

/** Undefined if no sandbox has exactly this name or session id, if two do, or if the server is too old to be asked. */
async function findByName(
  server: TurnboxClients,
  name: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  if (name === "") return undefined;
  try {
    const { sandbox } = await server.sandboxes.getSandbox({ name }, { signal });
    return sandbox?.sandboxId;
  } catch (thrown) {
    if (hasReason(thrown, "SANDBOX_NOT_FOUND", "INVALID_ARGUMENT")) return undefined;
    throw thrown;
  }
}
