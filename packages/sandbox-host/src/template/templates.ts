import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Call, type CommandRunner, SandboxError } from "@turnbox/core";
import type { BaseInfo, BaseRef, Storage } from "../storage/storage.ts";
import { type ArchiveLimits, unpackArchive } from "./archive.ts";
import { completeRoot } from "./root-layout.ts";
import { chooseVersion, parseTemplateName, parseTemplateReference } from "./template-reference.ts";
import { digestTree } from "./tree-digest.ts";

export interface TemplatesOptions {
  readonly storage: Storage;
  readonly runner: CommandRunner;
  /** A directory on a plain disk, for archives and trees that are not a template yet. */
  readonly stagingPath: string;
  readonly limits: ArchiveLimits;
}

const COPY_DEADLINE_MS = 600_000;

/** The templates of this host. A version is its content's digest: the same content imported twice is one version. */
export class Templates {
  readonly #options: TemplatesOptions;
  /** The last list, until this host makes or removes a version; nothing else does. */
  #known: readonly BaseInfo[] | undefined;

  constructor(options: TemplatesOptions) {
    this.#options = options;
  }

  /** The version that a session is made from; the latest one if only a name is given. `TEMPLATE_NOT_FOUND` otherwise. */
  async resolve(raw: string, call: Call): Promise<BaseInfo> {
    const reference = parseTemplateReference(raw);
    return chooseVersion(reference, versionsOf(reference.name, this.#known ?? (await this.list(call))));
  }

  /** By name, then newest first. */
  async list(call: Call): Promise<readonly BaseInfo[]> {
    this.#known = undefined;
    const bases = await this.#options.storage.listBases(call);
    this.#known = bases.toSorted((a, b) => compareText(a.name, b.name) || b.createdAtMs - a.createdAtMs);
    return this.#known;
  }

  /** Makes a version from a tar stream of a root filesystem. */
  async importArchive(name: string, archive: AsyncIterable<Uint8Array>, call: Call): Promise<BaseInfo> {
    parseTemplateName(name);
    const { limits, runner, stagingPath } = this.#options;
    await using staging = await stage(stagingPath);
    const file = join(staging.path, "archive.tar");
    await pipeline(Readable.from(bounded(archive, limits.maxBytes)), createWriteStream(file, { mode: 0o600 }), call);
    const fill = (directory: string): Promise<void> => unpackArchive(file, directory, { ...limits, ...call, runner });
    return await this.build(name, fill, call);
  }

  /** Makes a version from what `fill` writes into an empty directory. */
  async build(rawName: string, fill: (directory: string) => Promise<void>, call: Call): Promise<BaseInfo> {
    const name = parseTemplateName(rawName);
    const { storage, stagingPath, limits } = this.#options;
    await using staging = await stage(stagingPath);
    const root = join(staging.path, "root");
    await mkdir(root, { mode: 0o755 });
    await fill(root);
    await completeRoot(root);
    const digest = await digestTree(root, { ...call, maxBytes: limits.maxBytes });
    try {
      return await storage.createBase({ name, digest }, (directory) => this.#copy(root, directory, call), call);
    } finally {
      this.#known = undefined;
    }
  }

  async remove(base: BaseRef, call: Call): Promise<void> {
    const versions = versionsOf(base.name, await this.list(call));
    const found = chooseVersion({ name: base.name, version: base.digest }, versions);
    try {
      await this.#options.storage.destroyBase({ name: found.name, digest: found.digest }, call);
    } finally {
      this.#known = undefined;
    }
  }

  async #copy(from: string, to: string, call: Call): Promise<void> {
    const args = ["-a", "--", `${from}/.`, `${to}/`];
    const result = await this.#options.runner.run({ command: "cp", args, deadlineMs: COPY_DEADLINE_MS }, call);
    if (result.exitCode === 0) return;
    throw new SandboxError("STORAGE_UNAVAILABLE", `the template cannot be copied: ${result.stderr.trim()}`);
  }
}

function versionsOf(name: string, bases: readonly BaseInfo[]): readonly BaseInfo[] {
  return bases.filter((base) => base.name === name);
}

async function stage(parent: string): Promise<AsyncDisposable & { readonly path: string }> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const path = await mkdtemp(join(parent, "template-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function* bounded(archive: AsyncIterable<Uint8Array>, maxBytes: number): AsyncIterable<Uint8Array> {
  let bytes = 0;
  for await (const chunk of archive) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new SandboxError("TEMPLATE_INVALID", `the archive is larger than ${maxBytes} bytes`);
    yield chunk;
  }
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
