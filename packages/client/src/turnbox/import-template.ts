import { randomUUID } from "node:crypto";
import type { KeyedOptions } from "../sandbox/call.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { ServerLink } from "../sandbox/link/server-link.ts";
import { SandboxError } from "@turnbox/core";
import { toTemplate } from "./to-template.ts";
import type { ImportedTemplate } from "./turnbox-types.ts";

const PIECE_BYTES = 256 * 1024;

export interface TemplateArchive {
  readonly name: string;
  /** Read once, so that the import is tried once. */
  readonly archive: AsyncIterable<Uint8Array>;
}

/** Sends a tar archive to every host of the server. */
export async function importTemplate(
  server: ServerLink,
  { name, archive }: TemplateArchive,
  { idempotencyKey = randomUUID(), signal, timeoutMs = DEFAULT_TIMEOUT_MS.stream }: KeyedOptions,
): Promise<ImportedTemplate> {
  const parts = async function* () {
    yield { part: { case: "header" as const, value: { idempotencyKey, name } } };
    for await (const bytes of archive)
      for (let at = 0; at < bytes.length; at += PIECE_BYTES)
        yield { part: { case: "data" as const, value: bytes.subarray(at, at + PIECE_BYTES) } };
  };
  const { template, hosts } = await server.call(
    (to, call) => to.sandboxes.importTemplate(parts(), { signal: call.signal }),
    { timeoutMs, repeat: "never", ...(signal && { signal }) },
  );
  if (template === undefined) throw new SandboxError("INTERNAL", "the server's answer has no template");
  return { template: toTemplate(template), hosts };
}
