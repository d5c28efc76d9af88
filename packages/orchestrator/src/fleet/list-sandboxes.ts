import { hasReason, invalidArgument, SandboxError } from "@turnbox/core";
import type { Store } from "../store/store.ts";
import type { ControlCall, ListSandboxesRequest, Sandbox, SandboxPage } from "../control/sandbox-control.ts";
import type { AwaitHosts } from "./registry/await-hosts.ts";
import { formatFleetId } from "./fleet-id.ts";
import type { InstanceRegistry } from "./registry/instance-registry.ts";

export type ListSandboxes = (request: ListSandboxesRequest, call: ControlCall) => Promise<SandboxPage>;

/** Where a list goes on: at which instance, and with which page of its host. */
interface Cursor {
  readonly instanceId: string;
  readonly hostPageToken: string;
}

/**
 * Lists by asking the hosts, whose lists are the truth, one instance after another in the order of their ids. Names come
 * from the index. A host that does not answer is named in the page and passed over.
 */
export function createListSandboxes({
  registry,
  awaitHosts,
  store,
}: {
  readonly registry: InstanceRegistry;
  readonly awaitHosts: AwaitHosts;
  readonly store: Store;
}): ListSandboxes {
  return async (request, call) => {
    const start = request.pageToken === "" ? undefined : parseCursor(request.pageToken);
    const instanceIds = registry.instanceIds().filter((id) => start === undefined || id >= start.instanceId);
    await awaitHosts(instanceIds, call);
    const found: Sandbox[] = [];
    const unreachableInstances: string[] = [];
    for (const instanceId of instanceIds) {
      if (found.length >= request.pageSize) {
        return await page(found, { instanceId, hostPageToken: "" }, unreachableInstances);
      }
      const hostPageToken = start?.instanceId === instanceId ? start.hostPageToken : "";
      const pageSize = request.pageSize - found.length;
      try {
        const hostPage = await registry
          .connection(instanceId)
          .listSandboxes({ ...request, pageSize, pageToken: hostPageToken }, call);
        found.push(...hostPage.sandboxes.map((sandbox) => onInstance(sandbox, instanceId)));
        if (hostPage.nextPageToken !== "") {
          return await page(found, { instanceId, hostPageToken: hostPage.nextPageToken }, unreachableInstances);
        }
      } catch (error) {
        if (!isSilent(error) || call.signal.aborted) throw error;
        unreachableInstances.push(instanceId);
      }
    }
    return await page(found, undefined, unreachableInstances);

    async function page(
      sandboxes: readonly Sandbox[],
      next: Cursor | undefined,
      unreachable: readonly string[],
    ): Promise<SandboxPage> {
      const rows = await store.getSandboxes(
        sandboxes.map(({ session }) => session.sessionId),
        call,
      );
      const names = new Map(rows.filter((row) => row.tenant === call.tenant).map((row) => [row.sessionId, row.name]));
      return {
        sandboxes: sandboxes.map((sandbox) => withName(sandbox, names.get(sandbox.session.sessionId))),
        nextPageToken: next === undefined ? "" : formatCursor(next),
        unreachableInstances: unreachable,
      };
    }
  };
}

/** The host's sandbox under its id in the fleet. */
export function onInstance(sandbox: Sandbox, instanceId: string): Sandbox {
  return { ...sandbox, sandboxId: formatFleetId({ instanceId, sessionId: sandbox.session.sessionId }) };
}

export function withName(sandbox: Sandbox, name: string | undefined): Sandbox {
  return name === undefined ? sandbox : { ...sandbox, name };
}

const isSilent = (error: unknown): boolean =>
  hasReason(SandboxError.from(error), "HOST_UNREACHABLE", "DEADLINE_EXCEEDED", "SHUTTING_DOWN", "INSTANCE_NOT_FOUND");

function formatCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify([cursor.instanceId, cursor.hostPageToken])).toString("base64url");
}

function parseCursor(token: string): Cursor {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    if (Array.isArray(parts) && typeof parts[0] === "string" && typeof parts[1] === "string") {
      return { instanceId: parts[0], hostPageToken: parts[1] };
    }
  } catch {
    // Falls through to the refusal.
  }
  throw invalidArgument("page.page_token", "must be the token of the page before");
}
