import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument } from "@turnbox/core";
import {
  type FileService,
  MakeDirectoryRequestSchema,
  MoveRequestSchema,
  RemoveRequestSchema,
  type UploadArchiveHeader,
  UploadArchiveHeaderSchema,
  type WriteFileHeader,
  WriteFileHeaderSchema,
} from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { OperationName, OutputOf } from "../file/file-operations.ts";
import type { KeyedChange, KeyedChanges } from "../file/keyed-changes.ts";
import type { FileJob } from "../file/workers.ts";
import type { Session } from "../session/session.ts";
import { type FindsSessions, findSession, signalOf, type Stops } from "./call.ts";
import { toWireEntry } from "./file-convert.ts";
import { keyedRequest } from "./keyed-request.ts";

/** What the methods need that change files. */
export interface FileChangesParts extends FindsSessions, Stops {
  readonly fileChanges: Pick<KeyedChanges, "run" | "upload">;
}

type Handlers = ServiceImpl<typeof FileService>;
type ChangeMethods = "writeFile" | "makeDirectory" | "move" | "remove" | "uploadArchive";

const MAX_MODE = 0o777;
/** What one archive may unpack to, whatever space the session has. */
const ARCHIVE_LIMITS = { maxBytes: 64 * 1024 ** 3, maxEntries: 200_000 };
const REMOVE_MS = 300_000;

interface ChangeRequest {
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly expectedGeneration?: number | undefined;
}

/** The methods that change files. Each is done once for its key, in the session's gate. */
export function createFileChanges(host: FileChangesParts): Pick<Handlers, ChangeMethods> {
  return {
    writeFile: writeFile(host),
    uploadArchive: uploadArchive(host),
    makeDirectory: async (request, context) => {
      const input = { path: request.path, parents: request.parents ? "make" : "expect" } as const;
      const change = prepareChange(host, "MakeDirectory", { desc: MakeDirectoryRequestSchema, request, context });
      return { entry: toWireEntry(await runChange(host, "makeDirectory", change, { input })) };
    },
    move: async (request, context) => {
      const { source, destination, overwrite } = request;
      const input = { source, destination, existing: overwrite ? "replace" : "refuse" } as const;
      const change = prepareChange(host, "Move", { desc: MoveRequestSchema, request, context });
      return { entry: toWireEntry(await runChange(host, "move", change, { input })) };
    },
    remove: async (request, context) => {
      const input = { path: request.path, contents: request.recursive ? "remove" : "refuse" } as const;
      const job = request.recursive
        ? ({ input, deadlineMs: REMOVE_MS, lane: "transfer" } as const)
        : ({ input } as const);
      await runChange(
        host,
        "remove",
        prepareChange(host, "Remove", { desc: RemoveRequestSchema, request, context }),
        job,
      );
      return {};
    },
  };
}

function writeFile(host: FileChangesParts): Handlers["writeFile"] {
  return async (requests, context) => {
    const { header, body } = await openUpload<WriteFileHeader>(requests);
    if (header.mode > MAX_MODE) throw invalidArgument("header.mode", "must be permission bits, at most 0777");
    const input = {
      path: header.path,
      mode: header.mode === 0 ? null : header.mode,
      parents: header.createDirectories ? "make" : "expect",
    } as const;
    const { session, change } = prepareUpload(host, "WriteFile", { desc: WriteFileHeaderSchema, header, context });
    return { entry: toWireEntry(await host.fileChanges.upload(session, "writeFile", { ...change, body }, input)) };
  };
}

function uploadArchive(host: FileChangesParts): Handlers["uploadArchive"] {
  return async (requests, context) => {
    const { header, body } = await openUpload<UploadArchiveHeader>(requests);
    const input = { path: header.path, ...ARCHIVE_LIMITS };
    const { session, change } = prepareUpload(host, "UploadArchive", {
      desc: UploadArchiveHeaderSchema,
      header,
      context,
    });
    const { entries, bytes } = await host.fileChanges.upload(session, "unpackArchive", { ...change, body }, input);
    return { entries, bytes: BigInt(bytes) };
  };
}

interface Prepared {
  readonly session: Session;
  readonly change: KeyedChange;
}

function prepareChange<Desc extends DescMessage>(
  host: FileChangesParts,
  operation: string,
  sent: { readonly desc: Desc; readonly request: MessageShape<Desc> & ChangeRequest; readonly context: HandlerContext },
): Prepared {
  const { request, context } = sent;
  const session = findSession(host, request.sessionId, context);
  const { idempotencyKey: key, payload } = keyedRequest(sent.desc, request);
  const { expectedGeneration } = request;
  return {
    session,
    change: { operation, key, payload, expectedGeneration, signal: signalOf(host, key, context) },
  };
}

/** An upload ends with its client, whatever its key. */
function prepareUpload<Desc extends DescMessage>(
  host: FileChangesParts,
  operation: string,
  sent: { readonly desc: Desc; readonly header: MessageShape<Desc> & ChangeRequest; readonly context: HandlerContext },
): Prepared {
  const { header, context } = sent;
  const session = findSession(host, header.sessionId, context);
  const { idempotencyKey: key, payload } = keyedRequest(sent.desc, header, "header.idempotency_key");
  const { expectedGeneration } = header;
  return { session, change: { operation, key, payload, expectedGeneration, signal: context.signal } };
}

async function runChange<Name extends OperationName>(
  { fileChanges }: FileChangesParts,
  name: Name,
  { session, change }: Prepared,
  job: Pick<FileJob<Name>, "input" | "deadlineMs" | "lane">,
): Promise<OutputOf<Name>> {
  return await fileChanges.run(session, name, change, job);
}

/** A message of a client stream: the header first, then data. */
interface Part<Header> {
  readonly part:
    | { readonly case: "header"; readonly value: Header }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: undefined; readonly value?: undefined };
}

const MAX_DATA_BYTES = 1024 * 1024;

/** The header of an upload, and its data. */
async function openUpload<Header>(
  requests: AsyncIterable<Part<Header>>,
): Promise<{ readonly header: Header; readonly body: AsyncIterable<Uint8Array> }> {
  const parts = requests[Symbol.asyncIterator]();
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "header")
    throw invalidArgument("header", "must be the first message");
  return { header: first.value.part.value, body: readData(parts) };
}

async function* readData(parts: AsyncIterator<Part<unknown>>): AsyncIterable<Uint8Array> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    const { part } = next.value;
    if (part.case !== "data") throw invalidArgument("data", "only data follows the header");
    if (part.value.length > MAX_DATA_BYTES) throw invalidArgument("data", `must have at most ${MAX_DATA_BYTES} bytes`);
    yield part.value;
  }
}
