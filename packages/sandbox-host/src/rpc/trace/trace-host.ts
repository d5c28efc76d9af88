import { type Around, aroundMethods, replaceMembers } from "@turnbox/core";
import type { Tracing } from "@turnbox/rpc/trace";
import type { Runtime } from "../../runtime/runtime.ts";
import type { Storage } from "../../storage/storage.ts";
import type { ExecuteTool } from "../../tool/execute.ts";

const STORAGE = [
  "createSession",
  "createHead",
  "boundSession",
  "mountHead",
  "unmountHead",
  "destroyHead",
  "destroySession",
  "seal",
  "destroySnapshot",
  "openView",
] as const satisfies readonly (keyof Storage)[];

const RUNTIME = ["start", "exec", "spawn", "pause", "resume", "stop"] as const satisfies readonly (keyof Runtime)[];

/** The backends with a span for each step that takes time. */
export function traceBackends<Backends extends { readonly storage: Storage; readonly runtime: Runtime }>(
  backends: Backends,
  tracing: Tracing,
): Backends {
  return {
    ...backends,
    storage: traceStorage(backends.storage, tracing.around("storage")),
    runtime: aroundMethods(backends.runtime, RUNTIME, tracing.around("runtime")),
  };
}

function traceStorage(storage: Storage, around: Around): Storage {
  const traced = aroundMethods(storage, STORAGE, around);
  const { prewarm } = storage;
  if (prewarm === undefined) return traced;
  return replaceMembers(traced, {
    prewarm: { prepareSeal: (head, call) => aroundMethods(prewarm.prepareSeal(head, call), ["take"], around) },
  });
}

/** The host with a span for each tool call. Parameters and results of tools stay out of it. */
export function traceTools<Host extends { readonly executeTool: ExecuteTool }>(host: Host, tracing: Tracing): Host {
  if (tracing.state === "off") return host;
  return {
    ...host,
    executeTool: (session, call) =>
      tracing.span(
        {
          name: `tool ${call.toolName}`,
          attributes: {
            "turnbox.tool": call.toolName,
            "turnbox.tool_call_id": call.callId,
            "turnbox.session_id": session.row.id,
          },
        },
        () => host.executeTool(session, call),
      ),
  };
}
