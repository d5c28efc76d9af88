import { randomUUID } from "node:crypto";
import { hasReason } from "@turnbox/core";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { NotRepeatable } from "../link/sandbox-link.ts";
import { pull } from "../stream/pull.ts";
import { readFile, readWhole } from "./read-file.ts";
import type { FileInfo, SandboxFiles } from "./sandbox-files.ts";
import { toFileInfo } from "./to-file-info.ts";
import { createWatch } from "./watch-files.ts";
import { createUpload, writeFile } from "./write-file.ts";

const PAGE_SIZE = 1000;

export const createFiles = (calls: HostCalls): SandboxFiles => ({
  ...createReads(calls),
  ...createChanges(calls),
  watch: createWatch(calls),
  upload: createUpload(calls),
  download: createDownload(calls),
});

type Reads = Pick<SandboxFiles, "stat" | "exists" | "list" | "read" | "readText" | "readStream">;

function createReads(calls: HostCalls): Reads {
  const { sessionId } = calls;
  const timeout = { timeoutMs: DEFAULT_TIMEOUT_MS.read };
  const stat: SandboxFiles["stat"] = async (path, options) => {
    const { entry } = await calls.call({ options, ...timeout }, ({ host }, { signal }) =>
      host.files.stat({ sessionId, path }, { signal }),
    );
    return toFileInfo(entry);
  };
  return {
    stat,
    exists: async (path, options) => {
      try {
        await stat(path, options);
        return true;
      } catch (thrown) {
        if (hasReason(thrown, "FILE_NOT_FOUND")) return false;
        throw thrown;
      }
    },
    list: async (path, options) => {
      const entries: FileInfo[] = [];
      let pageToken = "";
      do {
        const question = { sessionId, path, page: { pageSize: PAGE_SIZE, pageToken } };
        const page = await calls.call({ options, ...timeout }, ({ host }, { signal }) =>
          host.files.listDirectory(question, { signal }),
        );
        entries.push(...page.entries.map(toFileInfo));
        pageToken = page.page?.nextPageToken ?? "";
      } while (pageToken !== "");
      return entries;
    },
    read: async (path, options = {}) => await readWhole(calls, path, options),
    readText: async (path, options = {}) => (await readWhole(calls, path, options)).toString("utf8"),
    readStream: (path, options = {}) =>
      pull<Uint8Array>(
        (emit, { signal }) =>
          readFile(calls, { path, onBytes: emit }, { timeoutMs: DEFAULT_TIMEOUT_MS.stream, ...options, signal }),
        options.signal,
      ),
  };
}

type Changes = Pick<SandboxFiles, "write" | "makeDirectory" | "move" | "remove">;

function createChanges(calls: HostCalls): Changes {
  const { sessionId } = calls;
  const timeout = { timeoutMs: DEFAULT_TIMEOUT_MS.change };
  return {
    write: (path, content, options = {}) => writeFile(calls, { path, content }, options),
    makeDirectory: async (path, options = {}) => {
      const { idempotencyKey = randomUUID(), parents = false } = options;
      const { entry } = await calls.call({ options, ...timeout }, ({ host }, { signal }) =>
        host.files.makeDirectory({ idempotencyKey, sessionId, path, parents }, { signal }),
      );
      return toFileInfo(entry);
    },
    move: async (source, destination, options = {}) => {
      const { idempotencyKey = randomUUID(), overwrite = false } = options;
      const request = { idempotencyKey, sessionId, source, destination, overwrite };
      const { entry } = await calls.call({ options, ...timeout }, ({ host }, { signal }) =>
        host.files.move(request, { signal }),
      );
      return toFileInfo(entry);
    },
    remove: async (path, options = {}) => {
      const { idempotencyKey = randomUUID(), recursive = false } = options;
      await calls.call({ options, ...timeout }, ({ host }, { signal }) =>
        host.files.remove({ idempotencyKey, sessionId, path, recursive }, { signal }),
      );
    },
  };
}

function createDownload(calls: HostCalls): SandboxFiles["download"] {
  const { sessionId } = calls;
  return (path, options = {}) =>
    pull<Uint8Array>(async (emit, own) => {
      const excludes = [...(options.excludes ?? [])];
      const call = { options: { ...options, signal: own.signal }, timeoutMs: DEFAULT_TIMEOUT_MS.stream };
      await calls.call(call, async ({ host }, { signal }) => {
        let state: "nothing sent" | "begun" = "nothing sent";
        try {
          for await (const { data } of host.files.downloadArchive({ sessionId, path, excludes }, { signal })) {
            state = "begun";
            await emit(data);
          }
          signal.throwIfAborted();
        } catch (cause) {
          // An archive has no offset to go on from: the second one need not be the same.
          throw state === "begun" ? new NotRepeatable("the archive is cut", { cause }) : cause;
        }
      });
    }, options.signal);
}
