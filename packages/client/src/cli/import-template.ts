import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { SandboxError } from "@turnbox/core";
import type {
  ImportTemplateRequestSchema,
  ImportTemplateResponse,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { TurnboxClients } from "../client.ts";
import type { Result } from "./output.ts";

const CHUNK_BYTES = 256 * 1024;

/** Sends a tar archive to every host of the server. */
export async function importTemplate(
  server: TurnboxClients,
  { name, path }: { readonly name: string; readonly path: string },
  { signal }: { readonly signal: AbortSignal },
): Promise<ImportTemplateResponse> {
  const file = await stat(path).catch(() => undefined);
  if (file?.isFile() !== true)
    throw new SandboxError("FILE_NOT_FOUND", `there is no file ${path}`, { metadata: { path } });
  return await server.sandboxes.importTemplate(parts(name, path), { signal });
}

async function* parts(name: string, path: string): AsyncIterable<MessageInitShape<typeof ImportTemplateRequestSchema>> {
  yield { part: { case: "header", value: { idempotencyKey: randomUUID(), name } } };
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    yield { part: { case: "data", value: chunk as Uint8Array } };
  }
}

/** What `import` and `build` print. */
export function importResult({ template, hosts }: ImportTemplateResponse, name: string): Result {
  const digest = template?.digest ?? "";
  return {
    json: { name: template?.name ?? name, digest, sizeBytes: Number(template?.sizeBytes ?? 0n), hosts },
    text: `imported ${name}@${digest.slice(0, 12)} on ${String(hosts)} ${hosts === 1 ? "host" : "hosts"}\n`,
  };
}
