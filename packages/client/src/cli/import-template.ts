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
import type { Invocation } from "./invocation.ts";
import type { OutputOptions } from "./option.ts";
import type { Result } from "./output.ts";
import { createProgressBar, type ProgressBar } from "./transfer/progress-bar.ts";

const CHUNK_BYTES = 256 * 1024;

export interface TemplateFile {
  readonly name: string;
  readonly path: string;
  readonly options: OutputOptions;
}

/** Sends a tar archive to every host of the server. On a terminal, stderr shows how far it is. */
export async function importTemplate(
  server: TurnboxClients,
  { name, path, options }: TemplateFile,
  { surroundings, signal }: Pick<Invocation, "surroundings" | "signal">,
): Promise<ImportTemplateResponse> {
  const file = await stat(path).catch(() => undefined);
  if (file?.isFile() !== true)
    throw new SandboxError("FILE_NOT_FOUND", `there is no file ${path}`, { metadata: { path } });
  const { clock, stderr } = surroundings;
  using bar = createProgressBar({ stream: stderr, clock, show: options.json === true ? "never" : "on terminals" });
  bar.expect(file.size);
  return await server.sandboxes.importTemplate(parts({ name, path }, bar), { signal });
}

async function* parts(
  { name, path }: { readonly name: string; readonly path: string },
  bar: ProgressBar,
): AsyncIterable<MessageInitShape<typeof ImportTemplateRequestSchema>> {
  yield { part: { case: "header", value: { idempotencyKey: randomUUID(), name } } };
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    const value = chunk as Uint8Array;
    yield { part: { case: "data", value } };
    bar.add(value.length);
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
