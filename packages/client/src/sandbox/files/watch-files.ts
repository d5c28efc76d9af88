import { SandboxError } from "@turnbox/core";
import { FileEventKind } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { pull } from "../stream/pull.ts";
import { toOptional } from "../wire/text.ts";
import type { FileEvent, SandboxFiles } from "./sandbox-files.ts";

const KINDS: ReadonlyMap<FileEventKind, FileEvent["kind"]> = new Map([
  [FileEventKind.CREATED, "created"],
  [FileEventKind.MODIFIED, "modified"],
  [FileEventKind.REMOVED, "removed"],
  [FileEventKind.RENAMED, "renamed"],
  [FileEventKind.OVERFLOW, "overflow"],
  [FileEventKind.STARTED, "started"],
]);

/** What happened between two watches is not known: a watch that had to begin again says so by `overflow`. */
export function createWatch(calls: HostCalls): SandboxFiles["watch"] {
  const { sessionId } = calls;
  return (path, options = {}) => {
    const question = { sessionId, path, recursive: options.recursive ?? false };
    return pull<FileEvent>(async (emit, own) => {
      let watches = 0;
      const call = { options: { ...options, signal: own.signal }, timeoutMs: DEFAULT_TIMEOUT_MS.stream };
      await calls.call(call, async ({ host }, { signal, progress }) => {
        for await (const event of host.files.watchDirectory(question, { signal })) {
          progress();
          const isStart = event.kind === FileEventKind.STARTED;
          if (isStart) watches += 1;
          const kind = isStart && watches > 1 ? "overflow" : KINDS.get(event.kind);
          if (kind !== undefined) await emit({ kind, path: event.path, oldPath: toOptional(event.oldPath) });
        }
        signal.throwIfAborted();
        throw new SandboxError("HOST_UNREACHABLE", "the watch ended", { metadata: { path } });
      });
    }, options.signal);
  };
}
