import { chmod, mkdir, realpath, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { randomToken, SandboxError } from "@turnbox/core";
import { baseNotFound, checkBase, checkHead, headNotFound } from "../names.ts";
import type { BaseRef, Head, HeadRef, Origin, SessionInventory } from "../storage.ts";
import { namesIn, readRecord, type TreeRecord } from "./record.ts";
import type { Trees } from "./tree.ts";

const UNDO_DEADLINE_MS = 60_000;
const DIRECTORIES = ["sessions", "bases", "journals", "staging", "trash"] as const;

/** Makes the directories of the storage if they are missing, and returns its real path. */
export async function prepareRoot(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  const root = await realpath(path);
  for (const name of DIRECTORIES) await mkdir(join(root, name), { recursive: true, mode: 0o700 });
  // Passable for the sandbox's users, listable for none of them.
  for (const directory of [root, join(root, "sessions")]) await chmod(directory, 0o711);
  return root;
}

/** Removes what was half-made or half-removed when an earlier service ended. */
export async function emptyLeftovers(root: string, trees: Trees, signal: AbortSignal): Promise<void> {
  for (const directory of ["staging", "trash"]) {
    for (const name of await namesIn(join(root, directory))) await trees.remove(join(root, directory, name), signal);
  }
}

export async function removeRoot(root: string, trees: Trees, signal: AbortSignal): Promise<void> {
  for (const name of DIRECTORIES) await trees.remove(join(root, name), signal);
  await rmdir(root).catch(() => undefined);
}

/** The directories and records of an opened storage: where they are, and how they come and go. */
export class DiskFiles {
  readonly root: string;
  readonly #trees: Trees;

  constructor(root: string, trees: Trees) {
    this.root = root;
    this.#trees = trees;
  }

  at(...parts: readonly string[]): string {
    return join(this.root, ...parts);
  }

  base({ name, digest }: BaseRef): string {
    return this.at("bases", name, digest);
  }

  session(token: string): string {
    return this.at("sessions", token);
  }

  head({ token, generation }: HeadRef): string {
    return join(this.session(token), "heads", `g${generation}`);
  }

  readBase(base: BaseRef): Promise<TreeRecord | undefined> {
    return readRecord(join(this.base(base), "record.json"));
  }

  readSession(token: string): Promise<TreeRecord | undefined> {
    return readRecord(join(this.session(token), "record.json"));
  }

  readHead(head: HeadRef): Promise<TreeRecord | undefined> {
    return readRecord(join(this.head(head), "record.json"));
  }

  /** Makes a directory in `staging` and removes it again unless it has been moved to its final path. */
  async stage<T>(work: (directory: string) => Promise<T>): Promise<T> {
    const directory = this.at("staging", randomToken(16));
    await mkdir(directory);
    try {
      return await work(directory);
    } finally {
      await this.#trees.remove(directory, AbortSignal.timeout(UNDO_DEADLINE_MS)).catch(() => undefined);
    }
  }

  async discard(path: string, signal: AbortSignal): Promise<void> {
    const trash = this.at("trash", randomToken(16));
    await rename(path, trash);
    await this.#trees.remove(trash, signal);
  }

  async requireOrigin(origin: Origin): Promise<{ readonly base: BaseRef; readonly referencedBytes: number }> {
    if (origin.kind === "snapshot") throw snapshotsNotAvailable();
    checkBase(origin.base);
    const record = await this.readBase(origin.base);
    if (record === undefined) throw baseNotFound(origin.base);
    return { base: origin.base, referencedBytes: record.referencedBytes ?? 0 };
  }

  async findHead({ token, generation }: HeadRef): Promise<Head | undefined> {
    const record = await this.readHead({ token, generation });
    if (record === undefined) return undefined;
    const { refquotaBytes } = record;
    const path = join(this.head({ token, generation }), "root");
    return { token, generation, path, ...(refquotaBytes === undefined ? {} : { refquotaBytes }) };
  }

  async requireHead(head: HeadRef): Promise<Head> {
    checkHead(head);
    const present = await this.findHead(head);
    if (present === undefined) throw headNotFound(head);
    return present;
  }

  async hasHeadOf(base: BaseRef): Promise<boolean> {
    for (const token of await namesIn(this.at("sessions"))) {
      for (const generation of await this.#generationsOf(token)) {
        if ((await this.readHead({ token, generation }))?.base === keyOf(base)) return true;
      }
    }
    return false;
  }

  async listSessions(): Promise<readonly SessionInventory[]> {
    const sessions: SessionInventory[] = [];
    for (const token of await namesIn(this.at("sessions"))) {
      const session = await this.readSession(token);
      if (session === undefined) continue;
      const heads: SessionInventory["heads"][number][] = [];
      for (const generation of await this.#generationsOf(token)) {
        const head = await this.readHead({ token, generation });
        if (head !== undefined) heads.push({ token, generation, mounted: "yes", marks: head.marks });
      }
      sessions.push({ token, marks: session.marks, heads, snapshots: [] });
    }
    return sessions;
  }

  async #generationsOf(token: string): Promise<readonly number[]> {
    return (await namesIn(join(this.session(token), "heads")))
      .map((name) => Number(name.slice(1)))
      .sort((left, right) => left - right);
  }
}

export function keyOf({ name, digest }: BaseRef): string {
  return `${name}@${digest}`;
}

export function snapshotsNotAvailable(): SandboxError {
  return new SandboxError("SNAPSHOTS_NOT_AVAILABLE", "the local-disk storage takes no snapshots");
}
