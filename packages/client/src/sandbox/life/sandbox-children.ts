import { randomUUID } from "node:crypto";
import { invalidArgument, isReason, SandboxError } from "@turnbox/core";
import type {
  ForkSandboxResult,
  Sandbox as WireSandbox,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { ServerLink } from "../link/server-link.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Fork, Sandbox } from "../sandbox.ts";
import { snapshotIdOf } from "../turn/sandbox-turns.ts";
import { toWireUint32 } from "../wire/number.ts";

interface Child {
  readonly sandboxId: string;
  readonly name: string;
  /** What the server said about it. */
  readonly known?: WireSandbox;
}

export interface ChildrenParts {
  readonly server: ServerLink;
  readonly calls: HostCalls;
  /** A handle of a sandbox that this one brought forth. */
  readonly adopt: (child: Child) => Sandbox;
}

/** Sandboxes that are made from this one's files. */
export function createChildren({ server, calls, adopt }: ChildrenParts): Pick<Sandbox, "fork" | "restore"> {
  const { sandboxId, sessionId } = calls;
  const toFork = ({ result, message }: ForkSandboxResult): Fork => {
    if (result.case === "sandbox")
      return { sandbox: adopt({ sandboxId: result.value.sandboxId, name: result.value.name, known: result.value }) };
    const stated = result.value ?? "";
    return { error: new SandboxError(isReason(stated) ? stated : "INTERNAL", message) };
  };
  return {
    fork: async (options = {}) => {
      const { idempotencyKey = randomUUID(), count = 1, from, labels = {} } = options;
      if (count < 1) throw invalidArgument("count", "must be from 1 to 100");
      const snapshotId = from === undefined ? "" : await snapshotIdOf(calls, from, options);
      const request = {
        idempotencyKey,
        sandboxId,
        snapshotId,
        count: toWireUint32("count", count),
        labels: { ...labels },
      };
      const { results } = await server.call((to, call) => to.sandboxes.forkSandbox(request, call), {
        timeoutMs: DEFAULT_TIMEOUT_MS.change,
        ...options,
      });
      return results.map(toFork);
    },
    restore: async (snapshotId, options = {}) => {
      const { idempotencyKey = randomUUID() } = options;
      const { session } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.snapshots.restoreSnapshot({ idempotencyKey, sessionId, snapshotId }, { signal }),
      );
      if (session === undefined) throw new SandboxError("INTERNAL", "the host's answer has no session");
      // It is on the same host.
      const instance = sandboxId.slice(0, sandboxId.lastIndexOf(":") + 1);
      return adopt({ sandboxId: `${instance}${session.sessionId}`, name: "" });
    },
  };
}
