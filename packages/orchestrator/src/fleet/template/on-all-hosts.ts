import { SandboxError } from "@turnbox/core";
import type { ControlCall, ImportedTemplate, ImportTemplateRequest, Template } from "../../control/sandbox-control.ts";
import { askAll } from "../ask-all.ts";
import { broadcast } from "../broadcast.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { ArchiveDraft, TemplateArchives } from "./template-archives.ts";

export interface ImportOnAllOptions {
  readonly registry: InstanceRegistry;
  /** Where archives are kept for hosts that come later; absent if they are not. */
  readonly archives?: TemplateArchives;
}

/**
 * Brings a template to every host, while the archive arrives. All or an error: repeated, it is done only where it is
 * missing, because the same content is the same version. The archive is kept for hosts that come later.
 */
export async function importOnAll(
  { registry, archives }: ImportOnAllOptions,
  request: ImportTemplateRequest,
  call: ControlCall,
): Promise<ImportedTemplate> {
  const instanceIds = registry.connectedIds();
  const hosts = instanceIds.map((instanceId) => registry.connection(instanceId));
  if (hosts.length === 0) throw new SandboxError("FLEET_EXHAUSTED", "the fleet has no instances");
  await using draft = await archives?.begin();
  const source = new Archive(request.archive, draft);
  const readers = broadcast(source, hosts.length);
  const outcomes = await Promise.allSettled(
    readers.map(async (archive, index) => {
      try {
        return await hosts[index]?.importTemplate({ ...request, archive }, call);
      } finally {
        await archive.leave();
      }
    }),
  );
  if (source.failure !== undefined) throw SandboxError.from(source.failure.thrown);
  const imported = outcomes.flatMap((outcome) =>
    outcome.status === "fulfilled" ? (outcome.value?.template ?? []) : [],
  );
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure !== undefined) throw SandboxError.from(failure.reason);
  const [template] = imported;
  if (template === undefined) throw new SandboxError("INTERNAL", "no host answered the import");
  await draft?.keep(template);
  // Placement goes by what the hosts said last.
  await Promise.all(instanceIds.map((instanceId) => registry.ask(instanceId, call)));
  return { template, hosts: imported.length };
}

/** Writes what is read into the draft, and remembers why the archive broke off. The calls that carry it to hosts fail with no more than that it did. */
class Archive implements AsyncIterable<Uint8Array> {
  failure: { readonly thrown: unknown } | undefined;
  readonly #pieces: AsyncIterable<Uint8Array>;
  readonly #draft: ArchiveDraft | undefined;

  constructor(pieces: AsyncIterable<Uint8Array>, draft: ArchiveDraft | undefined) {
    this.#pieces = pieces;
    this.#draft = draft;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of this.#pieces) {
        await this.#draft?.write(piece);
        yield piece;
      }
    } catch (thrown) {
      this.failure = { thrown };
      throw thrown;
    }
  }
}

/** The templates that any host that answers has, by name, then newest first. */
export async function listOfAll(registry: InstanceRegistry, call: ControlCall): Promise<readonly Template[]> {
  const lists = await askAll(registry, (host) => host.listTemplates(call));
  const versions = new Map<string, Template>();
  for (const template of lists.flat()) {
    const version = `${template.name}@${template.digest}`;
    const known = versions.get(version);
    versions.set(version, { ...template, latest: template.latest || known?.latest === true });
  }
  return [...versions.values()].sort(
    (a, b) => a.name.localeCompare(b.name) || b.createdAtMs - a.createdAtMs || a.digest.localeCompare(b.digest),
  );
}
