import { SandboxError } from "@turnbox/core";
import type { ControlCall, ImportedTemplate, ImportTemplateRequest, Template } from "../control/sandbox-control.ts";
import { askAll } from "./ask-all.ts";
import { broadcast } from "./broadcast.ts";
import type { InstanceRegistry } from "./registry/instance-registry.ts";

/**
 * Brings a template to every host, while the archive arrives. All or an error: repeated, it is done only where it is
 * missing, because the same content is the same version.
 */
export async function importOnAll(
  registry: InstanceRegistry,
  request: ImportTemplateRequest,
  call: ControlCall,
): Promise<ImportedTemplate> {
  const hosts = registry.connectedIds().map((instanceId) => registry.connection(instanceId));
  if (hosts.length === 0) throw new SandboxError("FLEET_EXHAUSTED", "the fleet has no instances");
  const source = new Archive(request.archive);
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
  return { template, hosts: imported.length };
}

/** Remembers why the archive broke off. The calls that carry it to hosts fail with no more than that it did. */
class Archive implements AsyncIterable<Uint8Array> {
  failure: { readonly thrown: unknown } | undefined;
  readonly #pieces: AsyncIterable<Uint8Array>;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#pieces;
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
