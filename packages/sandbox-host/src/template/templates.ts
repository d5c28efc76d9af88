import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type CommandRunner, SandboxError } from "@turnbox/core";
import type { BaseInfo, BaseRef, Storage } from "../storage/storage.ts";
import { type ArchiveLimits, unpackArchive } from "./archive.ts";
import { completeRoot } from "./root-layout.ts";
import { parseTemplateName, parseTemplateReference, type TemplateReference } from "./template-name.ts";
import { digestTree } from "./tree-digest.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** The templates of this host. A version is its content's digest: the same content imported twice is one version. */
export interface Templates {
  /** The version that a session is made from: the latest one where only a name is given. `TEMPLATE_NOT_FOUND` otherwise. */
  resolve(reference: string, call: Call): Promise<BaseInfo>;
  /** By name, then newest first. */
  list(call: Call): Promise<readonly BaseInfo[]>;
  /** Makes a version from a tar stream of a root filesystem. */
  importArchive(name: string, archive: AsyncIterable<Uint8Array>, call: Call): Promise<BaseInfo>;
  /** Makes a version from what `fill` writes into an empty directory. */
  build(name: string, fill: (directory: string) => Promise<void>, call: Call): Promise<BaseInfo>;
  remove(base: BaseRef, call: Call): Promise<void>;
}

const COPY_DEADLINE_MS = 600_000;

export function createTemplates(deps: {
  readonly storage: Storage;
  readonly runner: CommandRunner;
  /** A directory on a plain disk, for archives and trees that are not a template yet. */
  readonly stagingPath: string;
  readonly limits: ArchiveLimits;
}): Templates {
  const { storage, runner } = deps;

  /** What was listed last: only this host makes and removes them. */
  let known: readonly BaseInfo[] | undefined;
  const list: Templates["list"] = async (call) => {
    known = undefined;
    const bases = await storage.listBases(call);
    known = bases.toSorted((a, b) => compareText(a.name, b.name) || b.createdAtMs - a.createdAtMs);
    return known;
  };
  const versionsOf = async (name: string, call: Call): Promise<readonly BaseInfo[]> =>
    (known ?? (await list(call))).filter((base) => base.name === name);

  const build: Templates["build"] = async (rawName, fill, call) => {
    const name = parseTemplateName(rawName);
    await using staging = await stage(deps.stagingPath);
    const root = join(staging.path, "root");
    await mkdir(root, { mode: 0o755 });
    await fill(root);
    await completeRoot(root);
    const digest = await digestTree(root, { ...call, maxBytes: deps.limits.maxBytes });
    const copy = async (directory: string): Promise<void> => {
      const result = await runner.run(
        { command: "cp", args: ["-a", "--", `${root}/.`, `${directory}/`], deadlineMs: COPY_DEADLINE_MS },
        call,
      );
      if (result.exitCode !== 0)
        throw new SandboxError("STORAGE_UNAVAILABLE", `the template cannot be copied: ${result.stderr.trim()}`);
    };
    try {
      return await storage.createBase({ name, digest }, copy, call);
    } finally {
      known = undefined;
    }
  };

  return {
    list,
    build,
    resolve: async (raw, call) => {
      const reference = parseTemplateReference(raw);
      return choose(reference, await versionsOf(reference.name, call));
    },
    importArchive: async (name, archive, call) => {
      parseTemplateName(name);
      await using staging = await stage(deps.stagingPath);
      const file = join(staging.path, "archive.tar");
      await pipeline(
        Readable.from(bounded(archive, deps.limits.maxBytes)),
        createWriteStream(file, { mode: 0o600 }),
        call,
      );
      return await build(
        name,
        (directory) => unpackArchive(file, directory, { ...deps.limits, ...call, runner }),
        call,
      );
    },
    remove: async (base, call) => {
      const found = choose(
        { name: base.name, version: base.digest },
        (await list(call)).filter(({ name }) => name === base.name),
      );
      try {
        await storage.destroyBase({ name: found.name, digest: found.digest }, call);
      } finally {
        known = undefined;
      }
    },
  };
}

function choose({ name, version }: TemplateReference, versions: readonly BaseInfo[]): BaseInfo {
  const fitting = version === null ? versions.slice(0, 1) : versions.filter(({ digest }) => digest.startsWith(version));
  const [found] = fitting;
  if (found !== undefined && fitting.length === 1) return found;
  const asked = version === null ? name : `${name}@${version}`;
  throw new SandboxError(
    "TEMPLATE_NOT_FOUND",
    fitting.length > 1 ? `${fitting.length} versions begin with ${asked}` : `there is no template ${asked}`,
    { metadata: { template: asked } },
  );
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
