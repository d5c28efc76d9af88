import { type Call, type Clock, SandboxError } from "@turnbox/core";
import type { Husks } from "../lifecycle/husk.ts";
import type { Removal, Removals } from "../lifecycle/remove.ts";
import type { Registry } from "../session/registry.ts";
import type { Storage, StorageStatus } from "../storage/storage.ts";
import type { DataSpace } from "./data-space.ts";
import { type HealthGrade, worst } from "./grade.ts";

export interface HealthReport {
  readonly grade: HealthGrade;
  /** Null if the storage did not answer. */
  readonly storage: StorageStatus | null;
  readonly sessionCount: number;
  readonly failedSessions: number;
  /** Destroyed sessions whose files others depend on. */
  readonly husks: number;
  /** Sessions that the storage has and the records do not. */
  readonly quarantined: readonly string[];
  readonly activeTools: number;
  readonly uptimeMs: number;
  /** Sentences about what is wrong and what an operator should know. */
  readonly errors: readonly string[];
  readonly removals: readonly Removal[];
}

export interface HealthOptions {
  readonly storage: Storage;
  readonly registry: Registry;
  readonly removals: Pick<Removals, "pending">;
  readonly husks: Pick<Husks, "all">;
  readonly clock: Clock;
  readonly dataSpace: Pick<DataSpace, "assertRoom" | "judge">;
  /** The used share of the pool, from 0 to 1, from which on the host is degraded. */
  readonly warnThreshold: number;
  /** The used share of the pool, from 0 to 1, from which on nothing new is made. */
  readonly critThreshold: number;
}

/** How old a status of the storage may be. It is read at least every three seconds, by the watch of the storage. */
const STATUS_AGE_MS = 4_000;
const STATUS_TIMEOUT_MS = 5_000;
const RECOVERY_MS = 6_000;
const RECOVERY_POLL_MS = 250;

interface Verdict {
  readonly grade: HealthGrade;
  readonly error: string | null;
}

/** The state of the host, and whether its pool has room for more. */
export class Health {
  readonly #options: HealthOptions;
  readonly #startedMs: number;
  #last: { readonly atMs: number; readonly status: Promise<StorageStatus> } | undefined;
  #quarantined: readonly string[] = [];

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  /** Never rejects: a failure is part of the report. */
  async report(): Promise<HealthReport> {
    const { registry, removals, husks, clock, dataSpace } = this.#options;
    const found = await this.#status().then(
      (pool) => ({ pool, ...this.#judge(pool) }),
      (thrown: unknown) => ({ pool: null, grade: "unhealthy" as const, error: SandboxError.from(thrown).message }),
    );
    const sessions = registry.all();
    const failedSessions = sessions.filter(({ row }) => row.phase.kind === "failed").length;
    const counts = { failedSessions, husks: husks.all().length, quarantined: this.#quarantined };
    const data = dataSpace.judge();
    const grades = [found.grade, data.grade, this.#quarantined.length > 0 ? "degraded" : "healthy"] as const;
    return {
      grade: worst(grades),
      storage: found.pool,
      sessionCount: sessions.length,
      ...counts,
      activeTools: sessions.reduce((sum, { gate }) => sum + gate.inFlight, 0),
      uptimeMs: clock.monotonicMs() - this.#startedMs,
      errors: [...[found.error, data.error].filter((error) => error !== null), ...inWords(counts)],
      removals: removals.pending(),
    };
  }

  /**
   * Throws `DATA_DISK_FULL` if the reserve of the data directory is touched, `POOL_FULL` at the critical threshold, and
   * `STORAGE_UNAVAILABLE` if the pool does not serve, and does not serve again within the time in which a storage that has
   * died is opened again.
   */
  async assertRoom({ signal }: Call): Promise<void> {
    signal.throwIfAborted();
    this.#options.dataSpace.assertRoom();
    const pool = await this.#recovered(signal);
    const { grade, error } = this.#judge(pool);
    if (grade !== "unhealthy") return;
    const reason = pool.state === "unavailable" ? "STORAGE_UNAVAILABLE" : "POOL_FULL";
    throw new SandboxError(reason, error ?? "the pool takes no more", { retryAfterMs: 10_000 });
  }

  /** Whether the pool is online and below its warning threshold, and the data directory has room. */
  async isRoomy(): Promise<boolean> {
    const isRoomy = this.#options.dataSpace.judge().grade === "healthy";
    return isRoomy && this.#judge(await this.#status()).grade === "healthy";
  }

  /** Takes over a status that was read elsewhere just now. */
  noteStorage(status: StorageStatus): void {
    this.#last = { atMs: this.#options.clock.monotonicMs(), status: Promise.resolve(status) };
  }

  /** Reports from now on that these sessions are in the storage and not in the records. */
  quarantine(tokens: readonly string[]): void {
    this.#quarantined = [...tokens];
  }

  #status(): Promise<StorageStatus> {
    const last = this.#last;
    const isOld = last === undefined || this.#options.clock.monotonicMs() - last.atMs > STATUS_AGE_MS;
    return isOld ? this.#readStatus() : last.status;
  }

  #readStatus(): Promise<StorageStatus> {
    const { storage, clock } = this.#options;
    const status = storage.status({ signal: AbortSignal.timeout(STATUS_TIMEOUT_MS) });
    status.catch(() => {
      this.#last = undefined;
    });
    this.#last = { atMs: clock.monotonicMs(), status };
    return status;
  }

  async #recovered(signal: AbortSignal): Promise<StorageStatus> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + RECOVERY_MS;
    for (let pool = await this.#status(); ; pool = await this.#readStatus()) {
      if (pool.state !== "unavailable" || clock.monotonicMs() >= untilMs) return pool;
      await clock.sleep(RECOVERY_POLL_MS, { signal });
    }
  }

  #judge(pool: StorageStatus): Verdict {
    const { warnThreshold, critThreshold } = this.#options;
    if (pool.state === "unavailable") return { grade: "unhealthy", error: `the pool is ${pool.detail}` };
    const used = pool.sizeBytes === 0 ? 1 : pool.usedBytes / pool.sizeBytes;
    const percent = `the pool is ${Math.round(used * 100)} % full`;
    if (used >= critThreshold) return { grade: "unhealthy", error: `${percent}: no new sessions or snapshots` };
    if (used >= warnThreshold) return { grade: "degraded", error: percent };
    return pool.state === "degraded"
      ? { grade: "degraded", error: `the pool is ${pool.detail}` }
      : { grade: "healthy", error: null };
  }
}

function inWords(report: Pick<HealthReport, "failedSessions" | "husks" | "quarantined">): readonly string[] {
  const { failedSessions: failed, husks } = report;
  const lost = report.quarantined.length;
  return [
    ...(failed === 0 ? [] : [`${failed} ${failed === 1 ? "session has" : "sessions have"} failed and can be repaired`]),
    ...(husks === 0
      ? []
      : [husks === 1 ? "1 destroyed session waits for its forks" : `${husks} destroyed sessions wait for their forks`]),
    ...(lost === 0
      ? []
      : [`${lost} ${lost === 1 ? "session in the pool has" : "sessions in the pool have"} no record`]),
  ];
}
