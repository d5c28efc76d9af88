import { statfs } from "node:fs/promises";
import { type Clock, SandboxError } from "@turnbox/core";
import type { HealthGrade } from "./grade.ts";

const MiB = 1024 * 1024;
const LOOK_EVERY_MS = 1_000;

/**
 * The room on the disk of the data directory, which has the records, results and output journals, and often the image of the
 * pool. The reserve is for the records, so that work under way can end and sessions can be destroyed.
 */
export class DataSpace {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #reserveBytes: number;
  readonly #look: (directory: string) => Promise<number>;
  /** Infinite until the disk was read, and if it cannot be read: then nothing is refused. */
  #freeBytes = Number.POSITIVE_INFINITY;

  constructor(deps: {
    readonly directory: string;
    readonly clock: Clock;
    /** 0 means that nothing is refused. */
    readonly reserveBytes: number;
    /** Reads the free bytes. Default is the system's `statfs`. */
    readonly look?: (directory: string) => Promise<number>;
  }) {
    this.#directory = deps.directory;
    this.#clock = deps.clock;
    this.#reserveBytes = deps.reserveBytes;
    this.#look = deps.look ?? freeBytes;
  }

  /** Throws `DATA_DISK_FULL` if the reserve is touched. Uses the last look, so that no call waits. */
  assertRoom(): void {
    if (this.#freeBytes >= this.#reserveBytes) return;
    throw new SandboxError("DATA_DISK_FULL", this.#inWords(), { retryAfterMs: 10_000 });
  }

  judge(): { readonly grade: HealthGrade; readonly error: string | null } {
    if (this.#freeBytes < this.#reserveBytes) return { grade: "unhealthy", error: this.#inWords() };
    return this.#freeBytes < this.#reserveBytes * 2
      ? { grade: "degraded", error: this.#inWords() }
      : { grade: "healthy", error: null };
  }

  async look(): Promise<void> {
    this.#freeBytes = await this.#look(this.#directory).catch(() => Number.POSITIVE_INFINITY);
  }

  /** Looks every second until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look();
      await this.#clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
    }
  }

  #inWords(): string {
    const [free, reserve] = [this.#freeBytes, this.#reserveBytes].map((bytes) => Math.floor(bytes / MiB));
    return `the disk of the data directory has ${free} MiB left, and ${reserve} MiB are reserved for the records`;
  }
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
