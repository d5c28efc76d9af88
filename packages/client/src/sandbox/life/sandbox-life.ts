import { randomUUID } from "node:crypto";
import { SandboxError } from "@turnbox/core";
import type { Sandbox as WireSandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { ServerLink } from "../link/server-link.ts";
import type { CallOptions, KeyedOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { SandboxInfo } from "../sandbox-info.ts";
import type { Sandbox } from "../sandbox.ts";
import { toSandboxInfo, toSandboxStats } from "../to-sandbox-info.ts";
import { toWireUint32 } from "../wire/number.ts";
import { toDate, toWireDuration } from "../wire/time.ts";

const TOOLS = { wait: ToolsPolicy.WAIT, refuse: ToolsPolicy.REFUSE, kill: ToolsPolicy.KILL } as const;

export type SandboxLife = Pick<
  Sandbox,
  "info" | "stats" | "access" | "url" | "pause" | "resume" | "extend" | "repair" | "destroy"
>;

/** Pausing, resuming and destroying go through the server, which has to know; the rest goes to the host. */
export function createLife(server: ServerLink, calls: HostCalls): SandboxLife {
  const { sandboxId, sessionId } = calls;
  const read = (options: CallOptions | undefined) => ({ timeoutMs: DEFAULT_TIMEOUT_MS.read, ...options });
  const change = (options: CallOptions | undefined) => ({ timeoutMs: DEFAULT_TIMEOUT_MS.change, ...options });
  const keyOf = ({ idempotencyKey = randomUUID() }: KeyedOptions): string => idempotencyKey;
  const info = async (options?: CallOptions): Promise<SandboxInfo> => {
    const { sandbox } = await server.call((to, call) => to.sandboxes.getSandbox({ sandboxId }, call), read(options));
    return toSandboxInfo(present(sandbox));
  };

  return {
    info,
    stats: async (options) =>
      toSandboxStats(
        await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
          host.sessions.getSessionStats({ sessionId }, { signal }),
        ),
      ),
    access: async ({ ttlMs, ...options } = {}) => {
      const request = { sandboxId, ...(ttlMs === undefined ? {} : { ttl: toWireDuration("ttlMs", ttlMs) }) };
      const access = await server.call((to, call) => to.sandboxes.connectSandbox(request, call), read(options));
      const { url, token, sessionId: session, expiresAt } = access;
      return { url, token, sessionId: session, expiresAt: toDate(expiresAt) };
    },
    url: async (port, options = {}) => {
      const request = {
        idempotencyKey: keyOf(options),
        sessionId,
        port: toWireUint32("port", port),
        ...(options.ttlMs === undefined ? {} : { ttl: toWireDuration("ttlMs", options.ttlMs) }),
      };
      const access = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.sessions.createPortAccess(request, { signal }),
      );
      return { url: access.url, token: access.token, expiresAt: toDate(access.expiresAt) };
    },
    pause: async (options = {}) => {
      const request = { idempotencyKey: keyOf(options), sandboxId, tools: TOOLS[options.tools ?? "wait"] };
      const { sandbox } = await server.call((to, call) => to.sandboxes.pauseSandbox(request, call), change(options));
      return toSandboxInfo(present(sandbox));
    },
    resume: async (options = {}) => {
      const request = { idempotencyKey: keyOf(options), sandboxId };
      const { sandbox } = await server.call((to, call) => to.sandboxes.resumeSandbox(request, call), change(options));
      return toSandboxInfo(present(sandbox));
    },
    extend: async (ttlMs, options = {}) => {
      const ttl = ttlMs === "none" ? {} : { ttl: toWireDuration("ttlMs", ttlMs) };
      const request = { idempotencyKey: keyOf(options), sessionId, ...ttl };
      await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.sessions.extendSession(request, { signal }),
      );
      return await info(options);
    },
    repair: async (options = {}) => {
      const idempotencyKey = keyOf(options);
      const { actions } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.sessions.repairSession({ idempotencyKey, sessionId }, { signal }),
      );
      return { ...(await info(options)), actions };
    },
    destroy: async (options = {}) => {
      const request = { idempotencyKey: keyOf(options), sandboxId };
      await server.call((to, call) => to.sandboxes.destroySandbox(request, call), change(options));
    },
  };
}

function present(sandbox: WireSandbox | undefined): WireSandbox {
  if (sandbox !== undefined) return sandbox;
  throw new SandboxError("INTERNAL", "the server's answer has no sandbox");
}
