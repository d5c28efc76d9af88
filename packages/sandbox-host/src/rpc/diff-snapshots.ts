import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { holdsVerb, invalidArgument, parseSize, SandboxError } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  ChangeKind as WireKind,
  type ChangeSchema,
  type DiffSnapshotsRequest,
  type DiffSnapshotsResponseSchema,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { Change, ChangeKind } from "../turn/diff/change.ts";
import type { Answer } from "../turn/diff/answers.ts";
import type { DiffSnapshots } from "../turn/diff/diff-snapshots.ts";
import { type FindsSessions, findSession } from "./call.ts";
import { pageOf } from "./paging.ts";

const MIB = 1024 * 1024;
const DEFAULT_TEXT_BYTES = MIB;
const MAX_TEXT_BYTES = 16 * MIB;
/** A page ends here, well below what a message may have; the rest is on the next one. */
const MAX_PAGE_BYTES = 4 * MIB;
const MAX_PATH_BYTES = 4096;

const KINDS = {
  added: WireKind.ADDED,
  removed: WireKind.REMOVED,
  modified: WireKind.MODIFIED,
  renamed: WireKind.RENAMED,
  "type-changed": WireKind.TYPE_CHANGED,
} as const satisfies Record<ChangeKind, WireKind>;

export interface DiffSnapshotsParts extends FindsSessions {
  readonly diffSnapshots: DiffSnapshots;
}

/** SnapshotService.DiffSnapshots. A page token is the answer's id, a dot and a position in the answer. */
export function diffSnapshots(
  host: DiffSnapshotsParts,
): (
  request: DiffSnapshotsRequest,
  context: HandlerContext,
) => Promise<MessageInitShape<typeof DiffSnapshotsResponseSchema>> {
  return async (request, context) => {
    const caller = principalOf(context);
    const session = findSession(host, request.sessionId, context);
    if (request.text && !holdsVerb(caller, "files")) {
      throw new SandboxError("PERMISSION_DENIED", "text: the token does not allow files", {
        metadata: { field: "text" },
      });
    }
    if (request.fromSnapshotId === "") throw invalidArgument("from_snapshot_id", "must not be empty");
    const { answerId, position } = parseToken(request.page?.pageToken ?? "");
    const answer = await host.diffSnapshots(
      session,
      {
        fromSnapshotId: request.fromSnapshotId,
        toSnapshotId: request.toSnapshotId,
        path: parsePath(request.path),
        text: request.text ? { maxBytes: parseTextBytes(request.maxTextBytes) } : null,
        answerId,
      },
      { signal: context.signal },
    );
    const page = cutPage(answer, { pageSize: request.page?.pageSize ?? 0, pageToken: position });
    return {
      changes: page.changes.map(toWireChange),
      page: { nextPageToken: page.nextPosition === "" ? "" : `${answer.id}.${page.nextPosition}` },
    };
  };
}

function parseToken(token: string): { readonly answerId: string | null; readonly position: string } {
  if (token === "") return { answerId: null, position: "" };
  const [answerId, position, ...rest] = token.split(".");
  if (!answerId || !position || rest.length > 0)
    throw invalidArgument("page.page_token", "must be the next_page_token of an earlier page of the same list");
  return { answerId, position };
}

/** As many changes as were asked for and fit into a message, at least one. Their order is their only unique key. */
function cutPage(
  answer: Answer,
  request: { readonly pageSize: number; readonly pageToken: string },
): { readonly changes: readonly Change[]; readonly nextPosition: string } {
  const entries = answer.changes.map((change, index) => ({ change, key: index.toString().padStart(8, "0") }));
  const list = { listName: `diff ${answer.id}`, keyOf: ({ key }: { readonly key: string }) => key };
  const wanted = pageOf(entries, request, list);
  let bytes = 0;
  const tooMany = wanted.entries.findIndex(({ change }) => (bytes += change.bytes) > MAX_PAGE_BYTES);
  const page = tooMany < 0 ? wanted : pageOf(entries, { ...request, pageSize: Math.max(1, tooMany) }, list);
  return { changes: page.entries.map(({ change }) => change), nextPosition: page.nextPageToken };
}

/** An absolute path inside, in its shortest form. */
function parsePath(raw: string): string {
  if (raw === "") return "/";
  if (!raw.startsWith("/")) throw invalidArgument("path", "must be absolute");
  if (raw.includes("\0")) throw invalidArgument("path", "must not contain NUL");
  if (Buffer.byteLength(raw) > MAX_PATH_BYTES)
    throw invalidArgument("path", `must have at most ${MAX_PATH_BYTES} bytes`);
  const parts = raw.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw invalidArgument("path", "must not contain `..`");
  return `/${parts.join("/")}`;
}

function parseTextBytes(wire: bigint): number {
  const bytes = parseSize("max_text_bytes", wire) ?? DEFAULT_TEXT_BYTES;
  if (bytes > MAX_TEXT_BYTES) throw invalidArgument("max_text_bytes", `must be at most ${MAX_TEXT_BYTES}`);
  return bytes;
}

function toWireChange(change: Change): MessageInitShape<typeof ChangeSchema> {
  return {
    kind: KINDS[change.kind],
    path: change.path,
    oldPath: change.oldPath,
    oldSizeBytes: BigInt(change.oldSizeBytes),
    newSizeBytes: BigInt(change.newSizeBytes),
    binary: change.binary,
    unifiedDiff: change.unifiedDiff,
    diffTruncated: change.diffTruncated,
  };
}
