import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseKey } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
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
import { sentInTime } from "../file/stall.ts";
import type { FileJob } from "../file/workers.ts";
import { canonicalRequest } from "./canonical.ts";
import { toWireEntry } from "./file-convert.ts";
import type { Host } from "./host.ts";
import { openUpload, uploadOnce } from "./keyed-body.ts";
import { signalOf } from "./signal.ts";

type Handlers = ServiceImpl<typeof FileService>;
type ChangeMethods = "writeFile" | "makeDirectory" | "move" | "remove" | "uploadArchive";

const MAX_MODE = 0o777;
/** For what may take as long as a client sends, or as a tree is large. */
const LONG_MS = 3_600_000;
/** What one archive may unpack to, whatever space the session has. */
const ARCHIVE_LIMITS = { maxBytes: 64 * 1024 ** 3, maxEntries: 200_000 };
const REMOVE_MS = 300_000;

interface ChangeRequest {
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly expectedGeneration?: number | undefined;
}

/** The methods that change files. Each is done once for its key, in the session's gate. */
export function createFileChanges(host: Host): Pick<Handlers, ChangeMethods> {
  /** A change without a body. */
  const change = async <Name extends OperationName>(
    name: Name,
    request: ChangeRequest & { readonly operation: string; readonly payload: string; readonly context: HandlerContext },
    job: Pick<FileJob<Name>, "input" | "deadlineMs" | "lane">,
  ): Promise<OutputOf<Name>> => {
    const { operation, payload, context, expectedGeneration } = request;
    const session = host.registry.get(request.sessionId, principalOf(context));
    const key = parseKey("idempotency_key", request.idempotencyKey);
    const signal = signalOf(host, key, context);
    const scope = `${session.row.token}/${operation}`;
    return await host.receipts.onceApart(
      { scope, key, payload },
      async () =>
        (await host.changeFiles(session, { operation, expectedGeneration, signal }, (call) =>
          host.files.run(session, name, job, call),
        )) as OutputOf<Name>,
    );
  };

  /** A change whose body the client streams; with the client it ends. */
  const upload = async <Name extends OperationName>(
    name: Name,
    request: ChangeRequest & {
      readonly operation: string;
      readonly payload: string;
      readonly body: AsyncIterable<Uint8Array>;
      readonly context: HandlerContext;
    },
    input: FileJob<Name>["input"],
  ): Promise<OutputOf<Name>> => {
    const { operation, payload, body, context, expectedGeneration } = request;
    const session = host.registry.get(request.sessionId, principalOf(context));
    const key = parseKey("header.idempotency_key", request.idempotencyKey);
    const scope = `${session.row.token}/${operation}`;
    return await uploadOnce<OutputOf<Name>>(host, { scope, key, payload, body }, (pieces) =>
      host.changeFiles(
        session,
        { operation, expectedGeneration, signal: context.signal },
        async (call): Promise<OutputOf<Name>> => {
          const job = { input, body: sentInTime(pieces, host.clock), deadlineMs: LONG_MS, lane: "transfer" } as const;
          const written = session.dirtyFlag.beginWrite();
          using run = await host.files.stream(session, name, job, call);
          for (let piece = await run.next(); piece !== null; piece = await run.next());
          // An archive may be empty; a file that is written whole is a new one.
          if (name === "writeFile") written();
          return run.output;
        },
      ),
    );
  };

  return {
    writeFile: async (requests, context) => {
      const { header, body } = await openUpload<WriteFileHeader>(requests);
      if (header.mode > MAX_MODE) throw invalidArgument("header.mode", "must be permission bits, at most 0777");
      const payload = canonicalRequest(WriteFileHeaderSchema, { ...header, idempotencyKey: "" });
      const input = {
        path: header.path,
        mode: header.mode === 0 ? null : header.mode,
        parents: header.createDirectories ? "make" : "expect",
      } as const;
      const entry = await upload("writeFile", { ...header, operation: "WriteFile", payload, body, context }, input);
      return { entry: toWireEntry(entry) };
    },

    uploadArchive: async (requests, context) => {
      const { header, body } = await openUpload<UploadArchiveHeader>(requests);
      const payload = canonicalRequest(UploadArchiveHeaderSchema, { ...header, idempotencyKey: "" });
      const request = { ...header, operation: "UploadArchive", payload, body, context };
      const { entries, bytes } = await upload("unpackArchive", request, { path: header.path, ...ARCHIVE_LIMITS });
      return { entries, bytes: BigInt(bytes) };
    },

    makeDirectory: async (request, context) => {
      const payload = canonicalRequest(MakeDirectoryRequestSchema, { ...request, idempotencyKey: "" });
      const input = { path: request.path, parents: request.parents ? "make" : "expect" } as const;
      const entry = await change(
        "makeDirectory",
        { ...request, operation: "MakeDirectory", payload, context },
        { input },
      );
      return { entry: toWireEntry(entry) };
    },

    move: async (request, context) => {
      const payload = canonicalRequest(MoveRequestSchema, { ...request, idempotencyKey: "" });
      const { source, destination, overwrite } = request;
      const input = { source, destination, existing: overwrite ? "replace" : "refuse" } as const;
      return {
        entry: toWireEntry(await change("move", { ...request, operation: "Move", payload, context }, { input })),
      };
    },

    remove: async (request, context) => {
      const payload = canonicalRequest(RemoveRequestSchema, { ...request, idempotencyKey: "" });
      const input = { path: request.path, contents: request.recursive ? "remove" : "refuse" } as const;
      const job = request.recursive
        ? ({ input, deadlineMs: REMOVE_MS, lane: "transfer" } as const)
        : ({ input } as const);
      await change("remove", { ...request, operation: "Remove", payload, context }, job);
      return {};
    },
  };
}
