import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { type ImportedTemplate, SandboxError, type Turnbox } from "@turnbox/client";
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
  turnbox: Turnbox,
  { name, path, options }: TemplateFile,
  { surroundings, signal }: Pick<Invocation, "surroundings" | "signal">,
): Promise<ImportedTemplate> {
  const file = await stat(path).catch(() => undefined);
  if (file?.isFile() !== true)
    throw new SandboxError("FILE_NOT_FOUND", `there is no file ${path}`, { metadata: { path } });
  const { clock, stderr } = surroundings;
  using bar = createProgressBar({ stream: stderr, clock, show: options.json === true ? "never" : "on terminals" });
  bar.expect(file.size);
  return await turnbox.importTemplate(name, readPieces(path, bar), { signal });
}

async function* readPieces(path: string, bar: ProgressBar): AsyncIterable<Uint8Array> {
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    const bytes = chunk as Uint8Array;
    yield bytes;
    bar.add(bytes.length);
  }
}

/** What `import` and `build` print. */
export function importResult({ template, hosts }: ImportedTemplate): Result {
  const { name, digest, sizeBytes } = template;
  return {
    json: { name, digest, sizeBytes, hosts },
    text: `imported ${name}@${digest.slice(0, 12)} on ${String(hosts)} ${hosts === 1 ? "host" : "hosts"}\n`,
  };
}
