import { randomUUID } from "node:crypto";
import type { Template as WireTemplate } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { hasReason, SandboxError } from "@turnbox/core";
import { toNumber } from "../sandbox/wire/number.ts";
import { toDateOrEpoch } from "../sandbox/wire/time.ts";
import type { KeyedOptions } from "../sandbox/call.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { ServerLink } from "../sandbox/link/server-link.ts";
import type { OperatorHosts } from "../fleet/operator-hosts.ts";
import type { ImportedTemplate, Template } from "./turnbox-types.ts";

export const toTemplate = ({ name, digest, createdAt, sizeBytes, latest }: WireTemplate): Template => ({
  name,
  digest,
  createdAt: toDateOrEpoch(createdAt),
  sizeBytes: toNumber(sizeBytes),
  latest,
});

const PIECE_BYTES = 256 * 1024;

interface TemplateArchive {
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

/** Removes a version of a template from every host; returns how many had it. */
export async function removeTemplate(
  operator: OperatorHosts,
  { name, digest }: Pick<Template, "name" | "digest">,
  { idempotencyKey = randomUUID(), signal, timeoutMs = DEFAULT_TIMEOUT_MS.change }: KeyedOptions,
): Promise<number> {
  const call = { timeoutMs, ...(signal && { signal }) };
  const hosts = await operator.list(call);
  // Nothing is removed before all are fit.
  operator.assertTrusted("templates are removed", hosts);
  let removed = 0;
  for (const at of hosts) {
    using host = operator.open(at);
    try {
      await host.host.deleteTemplate({ idempotencyKey, name, digest }, call);
      removed += 1;
    } catch (thrown) {
      if (!hasReason(thrown, "TEMPLATE_NOT_FOUND")) throw thrown;
    }
  }
  return removed;
}
