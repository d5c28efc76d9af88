import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseSize } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  DownloadArchiveResponseSchema,
  type FileService,
  ReadFileResponseSchema,
  WatchDirectoryResponseSchema,
} from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { assertReadable } from "../file/change-files.ts";
import type { Entry } from "../file/entry.ts";
import type { OperationName } from "../file/file-operations.ts";
import { generationSignal } from "../file/generation-signal.ts";
import type { Piece } from "../file/job-run.ts";
import { askedInTime } from "../file/stall.ts";
import type { WatchEvent } from "../file/watch/watched-tree.ts";
import type { FileJob } from "../file/workers.ts";
import type { Session } from "../session/session.ts";
import { createFileChanges } from "./file-changes.ts";
import { EVENT_KINDS, toWireEntry } from "./file-convert.ts";
import type { Host } from "./host.ts";
import { formatToken, parsePage } from "./paging.ts";

const TRANSFER_MS = 3_600_000;
const WATCH_MS = 24 * 3_600_000;
const MAX_EXCLUDES = 100;

/** FileService: parse, work in a file worker, convert. Reading works in paused sessions too. */
export function createFileService(host: Host): ServiceImpl<typeof FileService> {
  const find = (id: string, operation: string, context: HandlerContext): Session => {
    const session = host.registry.get(id, principalOf(context));
    assertReadable(session, operation);
    return session;
  };

  /** The pieces of an operation, as slowly as the client takes them, each within a minute. What ends the stream ends its worker at once. */
  async function* pieces<Name extends OperationName>(
    session: Session,
    name: Name,
    job: Pick<FileJob<Name>, "input" | "deadlineMs" | "lane">,
    context: HandlerContext,
  ): AsyncGenerator<Piece> {
    const signal = AbortSignal.any([context.signal, host.stopping]);
    using call = generationSignal(session, { events: host.events, signal });
    using run = await host.files.stream(session, name, job, call);
    yield* askedInTime(run, host.clock);
  }

  return {
    ...createFileChanges(host),

    stat: async (request, context) => {
      const session = find(request.sessionId, "Stat", context);
      const job = { input: { path: request.path } };
      return { entry: toWireEntry(await host.files.run(session, "stat", job, { signal: context.signal })) };
    },

    listDirectory: async (request, context) => {
      const session = find(request.sessionId, "ListDirectory", context);
      const listName = `files of ${session.row.token} in ${request.path}`;
      const { size, after } = parsePage(request.page, listName);
      const job = { input: { path: request.path, after: after ?? "", count: size } };
      const { entries, last } = await host.files.run(session, "listDirectory", job, { signal: context.signal });
      return {
        entries: entries.map(toWireEntry),
        page: { nextPageToken: last === null ? "" : formatToken(last, listName) },
      };
    },

    async *readFile(request, context) {
      const session = find(request.sessionId, "ReadFile", context);
      const input = {
        path: request.path,
        offset: parseSize("offset", request.offset) ?? 0,
        limitBytes: parseSize("limit_bytes", request.limitBytes) ?? null,
      };
      const job = { input, deadlineMs: TRANSFER_MS, lane: "transfer" } as const;
      for await (const { bytes, about } of pieces(session, "readFile", job, context)) {
        yield create(ReadFileResponseSchema, {
          data: bytes,
          ...(about === null ? {} : { entry: toWireEntry(about as Entry) }),
        });
      }
    },

    async *downloadArchive(request, context) {
      const session = find(request.sessionId, "DownloadArchive", context);
      if (request.excludes.length > MAX_EXCLUDES)
        throw invalidArgument("excludes", `must have at most ${MAX_EXCLUDES} patterns`);
      const job = {
        input: { path: request.path, excludes: request.excludes },
        deadlineMs: TRANSFER_MS,
        lane: "transfer",
      } as const;
      for await (const { bytes } of pieces(session, "packArchive", job, context))
        yield create(DownloadArchiveResponseSchema, { data: bytes });
    },

    async *watchDirectory(request, context) {
      const session = find(request.sessionId, "WatchDirectory", context);
      const input = { path: request.path, depth: request.recursive ? "all" : "one" } as const;
      const job = { input, deadlineMs: WATCH_MS, lane: "watch" } as const;
      for await (const { about } of pieces(session, "watchDirectory", job, context)) {
        for (const { kind, path, oldPath } of about as readonly WatchEvent[])
          yield create(WatchDirectoryResponseSchema, { kind: EVENT_KINDS[kind], path, oldPath });
      }
    },
  };
}
