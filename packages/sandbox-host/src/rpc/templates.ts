import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseKey } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  DeleteTemplateRequestSchema,
  type HostService,
  type ImportTemplateHeader,
  type ImportTemplateRequest,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { Uploads } from "../session/uploads.ts";
import type { Templates } from "../template/templates.ts";
import type { RemoveTemplate } from "../warm/remove-template.ts";

import { toWireTemplate } from "./convert.ts";
import { keyedRequest } from "./keyed-request.ts";

/** What the methods need that are about templates. */
export interface TemplateParts {
  readonly templates: Pick<Templates, "importArchive" | "list">;
  readonly uploads: Pick<Uploads, "once">;
  readonly removeTemplate: RemoveTemplate;
}

type Handlers = ServiceImpl<typeof HostService>;

export function listTemplates(host: TemplateParts): Handlers["listTemplates"] {
  return async (_request, context) => {
    const bases = await host.templates.list({ signal: context.signal });
    const isLatest = (index: number): boolean => bases[index - 1]?.name !== bases[index]?.name;
    return { templates: bases.map((base, index) => toWireTemplate(base, isLatest(index) ? "latest" : "older")) };
  };
}

/** ImportTemplate. The same archive is the same version: what is imported twice is there once. */
export function importTemplate({ templates, uploads }: TemplateParts): Handlers["importTemplate"] {
  return async (requests, context) => {
    const parts = requests[Symbol.asyncIterator]();
    const { idempotencyKey, name } = await readHeader(parts);
    const upload = {
      scope: `${principalOf(context).tenant}/ImportTemplate`,
      key: parseKey("header.idempotency_key", idempotencyKey),
      payload: name,
      body: readData(parts),
      bodyName: "archive",
    } as const;
    const { base } = await uploads.once(upload, async (body) => ({
      base: await templates.importArchive(name, body, { signal: context.signal }),
    }));
    return { template: toWireTemplate(base, "latest") };
  };
}

export function deleteTemplate(host: TemplateParts): Handlers["deleteTemplate"] {
  return async (request, context) => {
    const removal = {
      tenant: principalOf(context).tenant,
      ...keyedRequest(DeleteTemplateRequestSchema, request),
      base: { name: request.name, digest: request.digest },
    };
    await host.removeTemplate(removal, { signal: context.signal });
    return {};
  };
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
