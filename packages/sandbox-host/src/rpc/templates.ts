import { createHash, type Hash } from "node:crypto";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseKey, SandboxError } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  DeleteTemplateRequestSchema,
  type HostService,
  type ImportTemplateHeader,
  type ImportTemplateRequest,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { ReceiptRow } from "../record/row.ts";
import type { BaseInfo } from "../storage/storage.ts";
import { canonicalRequest } from "./canonical.ts";
import { toWireTemplate } from "./convert.ts";
import type { Host } from "./host.ts";

type Handlers = ServiceImpl<typeof HostService>;

export function listTemplates(host: Host): Handlers["listTemplates"] {
  return async (_request, context) => {
    const bases = await host.templates.list({ signal: context.signal });
    const isLatest = (index: number): boolean => bases[index - 1]?.name !== bases[index]?.name;
    return { templates: bases.map((base, index) => toWireTemplate(base, isLatest(index) ? "latest" : "older")) };
  };
}

/** What the receipt of an import remembers. */
interface Imported {
  readonly base: BaseInfo;
  readonly bodyHash: string;
}

/**
 * ImportTemplate. A replay of a key is read to its end, and has to be the same archive. Template and receipt are not one
 * commit, but the same archive is the same version: a crash between them makes nothing twice.
 */
export function importTemplate(host: Host): Handlers["importTemplate"] {
  return async (requests, context) => {
    const parts = requests[Symbol.asyncIterator]();
    const { idempotencyKey, name } = await readHeader(parts);
    const key = parseKey("header.idempotency_key", idempotencyKey);
    const hash = createHash("sha256");
    const body = hashed(readData(parts), hash);
    let mine: Imported | undefined;
    const imported = await host.receipts.once<Imported>(
      { scope: scopeOf(context, "ImportTemplate"), key, payload: name },
      async (receiptOf) => {
        const base = await host.templates.importArchive(name, body, { signal: context.signal });
        mine = { base, bodyHash: hash.digest("hex") };
        await keep(host, receiptOf(mine));
        return mine;
      },
    );
    if (mine === undefined) await assertSameBody({ body, hash, imported, key });
    return { template: toWireTemplate(imported.base, "latest") };
  };
}

export function deleteTemplate(host: Host): Handlers["deleteTemplate"] {
  return async (request, context) => {
    const key = parseKey("idempotency_key", request.idempotencyKey);
    const payload = canonicalRequest(DeleteTemplateRequestSchema, { ...request, idempotencyKey: "" });
    await host.receipts.once<null>({ scope: scopeOf(context, "DeleteTemplate"), key, payload }, async (receiptOf) => {
      const base = { name: request.name, digest: request.digest };
      await host.warm.release(base);
      await host.templates.remove(base, { signal: context.signal });
      await keep(host, receiptOf(null));
      return null;
    });
    return {};
  };
}

function scopeOf(context: HandlerContext, operation: string): string {
  return `${principalOf(context).tenant}/${operation}`;
}

async function keep(host: Host, receipt: ReceiptRow | undefined): Promise<void> {
  if (receipt !== undefined) await host.records.call("keepReceipt", receipt);
}

async function assertSameBody(replay: {
  readonly body: AsyncIterable<Uint8Array>;
  readonly hash: Hash;
  readonly imported: Imported;
  readonly key: string;
}): Promise<void> {
  for await (const _ of replay.body);
  if (replay.hash.digest("hex") === replay.imported.bodyHash) return;
  throw new SandboxError("IDEMPOTENCY_CONFLICT", `idempotency key ${JSON.stringify(replay.key)} had another archive`, {
    metadata: { key: replay.key },
  });
}

async function readHeader(parts: AsyncIterator<ImportTemplateRequest>): Promise<ImportTemplateHeader> {
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "header")
    throw invalidArgument("header", "must be the first message");
  return first.value.part.value;
}

async function* readData(parts: AsyncIterator<ImportTemplateRequest>): AsyncIterable<Uint8Array> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    if (next.value.part.case !== "data") throw invalidArgument("data", "only data follows the header");
    yield next.value.part.value;
  }
}

async function* hashed(data: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    hash.update(chunk);
    yield chunk;
  }
}
