import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";

/** A version of a template. */
export interface TemplateVersion {
  readonly name: string;
  readonly digest: string;
}

export const formatVersion = ({ name, digest }: TemplateVersion): string => `${name}@${digest}`;

/** An archive that is being received. Disposal discards it unless it was kept. */
export interface ArchiveDraft extends AsyncDisposable {
  /** `DATA_DISK_FULL` if it cannot be stored. */
  write(chunk: Uint8Array): Promise<void>;
  /** Keeps it as what the version is made from. It is on the disk then. */
  keep(version: TemplateVersion): Promise<void>;
}

const KEPT = /^([a-z0-9][a-z0-9._-]*)@([0-9a-f]+)\.tar$/;
const DRAFT_PREFIX = ".draft-";

/** The archives that templates were imported from, as files of one directory that has no other owner. */
export class TemplateArchives {
  readonly #directory: string;
  #kept: readonly TemplateVersion[] = [];
  /** When the last of them was imported, as its file says. */
  #lastMs = 0;
  #loading: Promise<void> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** In the order in which they were imported first; none before `load`. */
  list(): readonly TemplateVersion[] {
    return this.#kept;
  }

  /** Reads what is there, once. */
  async load(): Promise<void> {
    this.#loading ??= this.#load().catch((thrown: unknown) => {
      this.#loading = undefined;
      throw thrown;
    });
    await this.#loading;
  }

  async begin(): Promise<ArchiveDraft> {
    await this.load();
    const path = join(this.#directory, `${DRAFT_PREFIX}${randomUUID()}`);
    const file = await open(path, "wx", 0o600).catch(notKept);
    return {
      write: async (chunk) => {
        await file.writeFile(chunk).catch(notKept);
      },
      keep: async (version) => {
        await file.sync().catch(notKept);
        await this.#keep(path, version).catch(notKept);
      },
      [Symbol.asyncDispose]: async () => {
        await file.close();
        await rm(path, { force: true });
      },
    };
  }

  read(version: TemplateVersion): AsyncIterable<Uint8Array> {
    return createReadStream(this.#pathOf(version));
  }

  async remove(version: TemplateVersion): Promise<void> {
    await rm(this.#pathOf(version), { force: true });
    this.#kept = this.#kept.filter((one) => formatVersion(one) !== formatVersion(version));
  }

  async #load(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const files = await readdir(this.#directory);
    for (const draft of files.filter((file) => file.startsWith(DRAFT_PREFIX)))
      await rm(join(this.#directory, draft), { force: true });
    const kept = files.flatMap((file) => {
      const [, name, digest] = KEPT.exec(file) ?? [];
      return name === undefined || digest === undefined ? [] : [{ name, digest }];
    });
    const times = await Promise.all(kept.map(async (one) => (await stat(this.#pathOf(one))).mtimeMs));
    const timed = kept.map((version, index) => ({ version, ms: times[index] ?? 0 }));
    this.#lastMs = Math.ceil(Math.max(0, ...times));
    this.#kept = timed.toSorted((a, b) => a.ms - b.ms).map(({ version }) => version);
  }

  async #keep(draft: string, { name, digest }: TemplateVersion): Promise<void> {
    const path = this.#pathOf({ name, digest });
    // The first import of a version decides which one is the latest of its name.
    if (await isThere(path)) return;
    // The order is that of the times of the files, which are too coarse for imports that follow at once.
    this.#lastMs = Math.max(Math.ceil((await stat(draft)).mtimeMs), this.#lastMs + 1);
    await utimes(draft, this.#lastMs / 1000, this.#lastMs / 1000);
    await rename(draft, path);
    this.#kept = [...this.#kept, { name, digest }];
  }

  #pathOf(version: TemplateVersion): string {
    return join(this.#directory, `${formatVersion(version)}.tar`);
  }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function notKept(cause: unknown): never {
  const why = cause instanceof Error ? cause.message : "";
  throw new SandboxError("DATA_DISK_FULL", `the archive of the template cannot be kept: ${why}`, { cause });
}
