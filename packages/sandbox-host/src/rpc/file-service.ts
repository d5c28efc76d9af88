import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Clock, invalidArgument, parseSize } from "@turnbox/core";
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
import type { SessionFiles } from "../file/session-files.ts";
import { askedInTime } from "../file/stall.ts";
import type { WatchEvent } from "../file/watch/watched-tree.ts";
import type { FileJob } from "../file/workers.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Session } from "../session/session.ts";
import { type FindsSessions, findSession, type Stops } from "./call.ts";
import { createFileChanges, type FileChangesParts } from "./file-changes.ts";
import { EVENT_KINDS, toWireEntry } from "./file-convert.ts";
import { formatToken, parsePage } from "./paging.ts";

/** What FileService needs. */
export interface FileServiceParts extends FindsSessions, Stops, FileChangesParts {
  readonly files: SessionFiles;
  readonly events: SessionEvents;
  readonly clock: Clock;
}

type Handlers = ServiceImpl<typeof FileService>;

const TRANSFER_MS = 3_600_000;
const WATCH_MS = 24 * 3_600_000;
const MAX_EXCLUDES = 100;

/** FileService: parse, work in a file worker, convert. Reading works in paused sessions too. */
export function createFileService(host: FileServiceParts): Handlers {
  return {
    ...createFileChanges(host),
    stat: async (request, context) => {
      const session = findReadable(host, request.sessionId, { operation: "Stat", context });
      const job = { input: { path: request.path } };
      return { entry: toWireEntry(await host.files.run(session, "stat", job, { signal: context.signal })) };
    },
    listDirectory: listDirectory(host),
    readFile: readFile(host),
    downloadArchive: downloadArchive(host),
    watchDirectory: watchDirectory(host),
  };
}

function findReadable(
  host: FindsSessions,
  id: string,
  { operation, context }: { readonly operation: string; readonly context: HandlerContext },
): Session {
  const session = findSession(host, id, context);
  assertReadable(session, operation);
  return session;
}

/** The pieces of an operation, as slowly as the client takes them, each within a minute. What ends the stream ends its worker at once. */
async function* pieces<Name extends OperationName>(
  { files, events, clock, stopping }: FileServiceParts,
  name: Name,
  job: Pick<FileJob<Name>, "input" | "deadlineMs" | "lane">,
  { session, context }: { readonly session: Session; readonly context: HandlerContext },
): AsyncGenerator<Piece> {
  const signal = AbortSignal.any([context.signal, stopping]);
  using call = generationSignal(session, { events, signal });
  using run = await files.stream(session, name, job, call);
  yield* askedInTime(run, clock);
}

function listDirectory(host: FileServiceParts): Handlers["listDirectory"] {
  return async (request, context) => {
    const session = findReadable(host, request.sessionId, { operation: "ListDirectory", context });
    const listName = `files of ${session.row.token} in ${request.path}`;
    const { size, after } = parsePage(request.page, listName);
    const job = { input: { path: request.path, after: after ?? "", count: size } };
    const { entries, last } = await host.files.run(session, "listDirectory", job, { signal: context.signal });
    return {
      entries: entries.map(toWireEntry),
      page: { nextPageToken: last === null ? "" : formatToken(last, listName) },
    };
  };
}

function readFile(host: FileServiceParts): Handlers["readFile"] {
  return async function* (request, context) {
    const session = findReadable(host, request.sessionId, { operation: "ReadFile", context });
    const input = {
      path: request.path,
      offset: parseSize("offset", request.offset) ?? 0,
      limitBytes: parseSize("limit_bytes", request.limitBytes) ?? null,
    };
    const job = { input, deadlineMs: TRANSFER_MS, lane: "transfer" } as const;
    for await (const { bytes, about } of pieces(host, "readFile", job, { session, context })) {
      yield create(ReadFileResponseSchema, {
        data: bytes,
        ...(about === null ? {} : { entry: toWireEntry(about as Entry) }),
      });
    }
  };
}

function downloadArchive(host: FileServiceParts): Handlers["downloadArchive"] {
  return async function* (request, context) {
    const session = findReadable(host, request.sessionId, { operation: "DownloadArchive", context });
    if (request.excludes.length > MAX_EXCLUDES)
      throw invalidArgument("excludes", `must have at most ${MAX_EXCLUDES} patterns`);
    const job = {
      input: { path: request.path, excludes: request.excludes },
      deadlineMs: TRANSFER_MS,
      lane: "transfer",
    } as const;
    for await (const { bytes } of pieces(host, "packArchive", job, { session, context }))
      yield create(DownloadArchiveResponseSchema, { data: bytes });
  };
}

function watchDirectory(host: FileServiceParts): Handlers["watchDirectory"] {
  return async function* (request, context) {
    const session = findReadable(host, request.sessionId, { operation: "WatchDirectory", context });
    const input = { path: request.path, depth: request.recursive ? "all" : "one" } as const;
    const job = { input, deadlineMs: WATCH_MS, lane: "watch" } as const;
    for await (const { about } of pieces(host, "watchDirectory", job, { session, context })) {
      for (const { kind, path, oldPath } of about as readonly WatchEvent[])
        yield create(WatchDirectoryResponseSchema, { kind: EVENT_KINDS[kind], path, oldPath });
    }
  };
}
