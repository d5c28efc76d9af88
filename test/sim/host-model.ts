import { SandboxError } from "@turnbox/core";
import type { HostReport, HostSession } from "../../packages/orchestrator/src/control/host-connection.ts";
import type {
  CreateSandboxRequest,
  Sandbox,
  SandboxCapabilities,
  SandboxState,
} from "../../packages/orchestrator/src/control/sandbox-control.ts";
import { unreachable } from "./wire.ts";
import type { SimWorld } from "./world.ts";

export interface ModelSession {
  readonly sessionId: string;
  readonly tenant: string;
  /** The create that made it: one key of a host makes one session. */
  readonly key: string;
  /** Whose wish it fulfils. */
  readonly client: string;
  /** Which run of which orchestrator asked for it first. */
  readonly from: string;
  readonly beganAtMs: number;
  state: SandboxState;
}

/** Is told of everything that becomes of sessions, at the moment it does. */
export interface HostWatch {
  sessionBegan(host: HostModel, session: ModelSession): void;
  sessionEnded(host: HostModel, session: ModelSession, why: "destroyed" | "undone" | "lost"): void;
  commandObeyed(host: HostModel, epoch: number, what: string): void;
}

export const CAPABILITIES: SandboxCapabilities = {
  snapshots: true,
  rollback: true,
  fork: true,
  pause: true,
  launchProcess: true,
  deepPause: false,
  concurrentSandboxes: 0,
  maxSandboxDurationMs: 0,
  pausePreservesProcesses: false,
  tierRouting: false,
  streamingProgress: true,
  storage: "model",
  runtime: "model",
};

const CREATE_MS = [80, 1500] as const;
const DESTROY_MS = [20, 400] as const;
const PAUSE_MS = [20, 300] as const;

/**
 * A sandbox-host as the fleet knows it: it keeps its sessions, its admission, the highest epoch that it has seen and the
 * keys of its creates over restarts, and refuses what a real one refuses.
 */
export class HostModel {
  readonly instanceId: string;
  readonly maxSessions: number;
  readonly sessions = new Map<string, ModelSession>();
  admission: "open" | "closed" = "open";
  highestEpoch = 0;
  health: HostReport["health"] = "healthy";
  /** Whether its process runs; the machine under it is the cloud's. */
  isUp = false;
  readonly #world: SimWorld;
  readonly #watch: HostWatch;
  readonly #creates = new Map<string, Promise<Sandbox>>();
  readonly #removed = new Set<string>();
  /** Raised by each end of the process, so that what it was in the middle of does not go on. */
  #life = 0;

  constructor(options: {
    readonly instanceId: string;
    readonly maxSessions: number;
    readonly world: SimWorld;
    readonly watch: HostWatch;
  }) {
    this.instanceId = options.instanceId;
    this.maxSessions = options.maxSessions;
    this.#world = options.world;
    this.#watch = options.watch;
  }

  start(): void {
    this.isUp = true;
  }

  /** The process ends; what was being created is either there after the next start or not at all. */
  end(): void {
    this.isUp = false;
    this.#life += 1;
    for (const session of [...this.sessions.values()]) {
      if (session.state === "destroying") this.#remove(session);
      if (session.state !== "creating") continue;
      if (this.#world.chance.happens(0.5)) this.#finish(session);
      else this.#undo(session);
    }
  }

  /** The machine is gone with its disk. */
  lose(): void {
    this.isUp = false;
    this.#life += 1;
    for (const session of [...this.sessions.values()]) {
      this.sessions.delete(session.sessionId);
      this.#watch.sessionEnded(this, session, "lost");
    }
  }

  async create(request: CreateSandboxRequest, caller: { tenant: string; from: string }): Promise<Sandbox> {
    const key = request.idempotencyKey;
    const known = this.#creates.get(key);
    if (known !== undefined) return await known;
    const session: ModelSession = {
      sessionId: request.sessionId ?? key,
      key,
      client: request.labels["client"] ?? "",
      ...caller,
      beganAtMs: this.#world.timeline.nowMs,
      state: "creating",
    };
    this.#admit(session);
    this.sessions.set(session.sessionId, session);
    this.#watch.sessionBegan(this, session);
    const made = this.#make(session);
    this.#creates.set(key, made);
    return await made;
  }

  get(sessionId: string): Sandbox {
    return this.#describe(this.#find(sessionId));
  }

  async destroy(sessionId: string): Promise<void> {
    if (this.#removed.has(sessionId)) return;
    const session = this.#find(sessionId);
    if (session.state === "creating") throw new SandboxError("INVALID_STATE", "the session is still being created");
    session.state = "destroying";
    await this.#work(DESTROY_MS);
    this.#remove(session);
  }

  async setState(sessionId: string, state: "active" | "paused"): Promise<Sandbox> {
    const session = this.#find(sessionId);
    await this.#work(PAUSE_MS);
    if (session.state === "active" || session.state === "paused") session.state = state;
    return this.#describe(session);
  }

  list(): readonly Sandbox[] {
    return [...this.sessions.values()].map((session) => this.#describe(session));
  }

  all(): readonly HostSession[] {
    return [...this.sessions.values()].map(({ sessionId, tenant, state }) => ({ sessionId, tenant, state }));
  }

  setAdmission(admission: "open" | "closed", epoch: number): void {
    this.#obey(epoch, `admission ${admission}`);
    this.admission = admission;
  }

  async pause(sessionId: string, epoch: number): Promise<void> {
    this.#obey(epoch, `pause ${sessionId}`);
    if (this.sessions.has(sessionId)) await this.setState(sessionId, "paused");
  }

  report(): HostReport {
    return {
      health: this.health,
      sessionCount: this.sessions.size,
      maxSessions: this.maxSessions,
      cpus: 8,
      memoryBytes: 0,
      memoryAvailableBytes: 0,
      poolBytes: 0,
      poolAvailableBytes: 0,
      admission: this.admission,
      templates: [],
      problems: this.health === "healthy" ? [] : [`the host is ${this.health}`],
    };
  }

  #admit({ sessionId }: ModelSession): void {
    if (this.sessions.has(sessionId) || this.#removed.has(sessionId)) {
      throw new SandboxError("SESSION_EXISTS", `there is a session ${sessionId}`);
    }
    if (this.admission === "closed") throw new SandboxError("HOST_CORDONED", "the host takes no new sessions");
    if (this.health === "unhealthy") throw new SandboxError("POOL_FULL", "the pool is full");
    if (this.sessions.size >= this.maxSessions) throw new SandboxError("MAX_SESSIONS_REACHED", "the host is full");
  }

  async #make(session: ModelSession): Promise<Sandbox> {
    const fails = this.#world.chance.happens(this.#world.weather.failedCreate);
    await this.#work(CREATE_MS);
    if (fails) {
      this.#undo(session);
      throw new SandboxError("POOL_FULL", "there is no room for its files");
    }
    session.state = "active";
    return this.#describe(session);
  }

  #finish(session: ModelSession): void {
    session.state = "active";
    this.#creates.set(session.key, Promise.resolve(this.#describe(session)));
  }

  #undo(session: ModelSession): void {
    this.#creates.delete(session.key);
    this.sessions.delete(session.sessionId);
    this.#watch.sessionEnded(this, session, "undone");
  }

  #remove(session: ModelSession): void {
    this.#removed.add(session.sessionId);
    if (this.sessions.delete(session.sessionId)) this.#watch.sessionEnded(this, session, "destroyed");
  }

  #obey(epoch: number, what: string): void {
    if (epoch < this.highestEpoch) {
      throw new SandboxError("EPOCH_STALE", `the epoch ${String(epoch)} is over`);
    }
    this.highestEpoch = epoch;
    this.#watch.commandObeyed(this, epoch, what);
  }

  #find(sessionId: string): ModelSession {
    const session = this.sessions.get(sessionId);
    if (session === undefined) throw new SandboxError("SANDBOX_NOT_FOUND", `there is no session ${sessionId}`);
    return session;
  }

  #work([lowMs, highMs]: readonly [number, number]): Promise<void> {
    const { timeline, chance } = this.#world;
    const life = this.#life;
    return new Promise((resolve, reject) => {
      timeline.after(chance.between(lowMs, highMs), () => {
        if (life === this.#life) resolve();
        else reject(unreachable("unknown"));
      });
    });
  }

  #describe({ sessionId, state }: ModelSession): Sandbox {
    return {
      sandboxId: sessionId,
      address: `${this.instanceId}.sim:9100`,
      capabilities: CAPABILITIES,
      session: {
        sessionId,
        state,
        generation: 1,
        base: "base",
        labels: {},
        createdAtMs: 0,
        turnCount: 0,
        snapshotCount: 0,
        spaceUsedBytes: 0,
        resources: {},
        quotaBytes: 0,
        parentSnapshotId: "",
        failure: "",
        onTimeout: "pause",
        activeTools: 0,
      },
    };
  }
}
