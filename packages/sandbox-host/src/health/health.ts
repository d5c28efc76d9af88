import { type Clock, SandboxError } from "@turnbox/core";
import type { Husks } from "../lifecycle/husk.ts";
import type { Removal, Removals } from "../lifecycle/remove.ts";
import type { Registry } from "../session/registry.ts";
import type { Storage, StorageStatus } from "../storage/storage.ts";
import type { DataSpace } from "./data-space.ts";
import { type HealthGrade, worst } from "./grade.ts";

export interface HealthReport {
  readonly grade: HealthGrade;
  /** Null where the storage did not answer. */
  readonly storage: StorageStatus | null;
  readonly sessionCount: number;
  readonly failedSessions: number;
  /** Destroyed sessions whose files others depend on. */
  readonly husks: number;
  /** Sessions that the storage has and the records do not. */
  readonly quarantined: readonly string[];
  readonly activeTools: number;
  readonly uptimeMs: number;
  /** In words, what is wrong and what is worth knowing. */
  readonly errors: readonly string[];
  readonly removals: readonly Removal[];
}

/** How the host is, and whether its pool takes more. */
export interface Health {
  /** Never throws: what is wrong is what it tells. */
  report(): Promise<HealthReport>;
  /**
   * Throws `DATA_DISK_FULL` where the reserve of the data directory is touched, `POOL_FULL` at the critical threshold, `STORAGE_UNAVAILABLE` where the pool is in no state to serve and does not
   * come to serve within the time in which a storage that has died is opened again.
   */
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
  /** Whether the pool is in a good state and below its warning threshold, and the data directory has room. */
  isRoomy(): Promise<boolean>;
  /** Takes in what the storage has just said to somebody else. */
  noteStorage(status: StorageStatus): void;
  /** Tells from now on that these are in the storage and nobody knows of them. */
  quarantine(tokens: readonly string[]): void;
}

/** How old an answer of the storage may be before it is asked again. Somebody asks it every three seconds. */
const STATUS_AGE_MS = 4_000;
const STATUS_TIMEOUT_MS = 5_000;
const RECOVERY_MS = 6_000;
const RECOVERY_POLL_MS = 250;

interface Verdict {
  readonly grade: HealthGrade;
  readonly error: string | null;
}

export function createHealth(deps: {
  readonly storage: Storage;
  readonly registry: Registry;
  readonly removals: Pick<Removals, "pending">;
  readonly husks: Pick<Husks, "all">;
  readonly clock: Clock;
  readonly dataSpace: Pick<DataSpace, "assertRoom" | "judge">;
  readonly warnThreshold: number;
  readonly critThreshold: number;
}): Health {
  const { storage, registry, removals, husks, clock, dataSpace } = deps;
  const startedMs = clock.monotonicMs();
  let cached: { readonly atMs: number; readonly status: Promise<StorageStatus> } | undefined;
  let quarantined: readonly string[] = [];

  const ask = (): Promise<StorageStatus> => {
    const asked = storage.status({ signal: AbortSignal.timeout(STATUS_TIMEOUT_MS) });
    asked.catch(() => {
      cached = undefined;
    });
    cached = { atMs: clock.monotonicMs(), status: asked };
    return asked;
  };
  const status = (): Promise<StorageStatus> =>
    cached === undefined || clock.monotonicMs() - cached.atMs > STATUS_AGE_MS ? ask() : cached.status;
  const recovered = async (signal: AbortSignal): Promise<StorageStatus> => {
    const untilMs = clock.monotonicMs() + RECOVERY_MS;
    for (let pool = await status(); ; pool = await ask()) {
      if (pool.state !== "unavailable" || clock.monotonicMs() >= untilMs) return pool;
      await clock.sleep(RECOVERY_POLL_MS, { signal });
    }
  };

  const judge = (pool: StorageStatus): Verdict => {
    if (pool.state === "unavailable") return { grade: "unhealthy", error: `the pool is ${pool.detail}` };
    const used = pool.sizeBytes === 0 ? 1 : pool.usedBytes / pool.sizeBytes;
    const percent = `the pool is ${Math.round(used * 100)} % full`;
    if (used >= deps.critThreshold) return { grade: "unhealthy", error: `${percent}: no new sessions or snapshots` };
    if (used >= deps.warnThreshold) return { grade: "degraded", error: percent };
    return pool.state === "degraded"
      ? { grade: "degraded", error: `the pool is ${pool.detail}` }
      : { grade: "healthy", error: null };
  };

  return {
    report: async () => {
      const found = await status().then(
        (pool) => ({ pool, ...judge(pool) }),
        (thrown: unknown) => ({ pool: null, grade: "unhealthy" as const, error: SandboxError.from(thrown).message }),
      );
      const sessions = registry.all();
      const failedSessions = sessions.filter(({ row }) => row.phase.kind === "failed").length;
      const counts = { failedSessions, husks: husks.all().length, quarantined };
      const data = dataSpace.judge();
      const grades = [found.grade, data.grade, quarantined.length > 0 ? "degraded" : "healthy"] as const;
      return {
        grade: worst(grades),
        storage: found.pool,
        sessionCount: sessions.length,
        ...counts,
        activeTools: sessions.reduce((sum, { gate }) => sum + gate.inFlight, 0),
        uptimeMs: clock.monotonicMs() - startedMs,
        errors: [...[found.error, data.error].filter((error) => error !== null), ...inWords(counts)],
        removals: removals.pending(),
      };
    },
    assertRoom: async ({ signal }) => {
      signal.throwIfAborted();
      dataSpace.assertRoom();
      const pool = await recovered(signal);
      const { grade, error } = judge(pool);
      if (grade !== "unhealthy") return;
      throw new SandboxError(
        pool.state === "unavailable" ? "STORAGE_UNAVAILABLE" : "POOL_FULL",
        error ?? "the pool takes no more",
        {
          retryAfterMs: 10_000,
        },
      );
    },
    isRoomy: async () => dataSpace.judge().grade === "healthy" && judge(await status()).grade === "healthy",
    noteStorage: (pool) => {
      cached = { atMs: clock.monotonicMs(), status: Promise.resolve(pool) };
    },
    quarantine: (tokens) => {
      quarantined = [...tokens];
    },
  };
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
