import { type KeyedMutex, SandboxError } from "@turnbox/core";
import { withinStopLimit } from "../../execution/within-stop-limit.ts";
import { type GvisorContext, liveState, lost, runsc } from "../context.ts";
import { removeContainer } from "./boot.ts";
import { noteDeath } from "./death-causes.ts";

const CONTROL_DEADLINE_MS = 10_000;

export interface ContainerLifeOptions {
  /** Held over everything that starts, pauses, resumes or stops a container. */
  readonly lock: KeyedMutex;
  /** Called before a container that is alive is removed. */
  readonly onStopping: (id: string) => void;
  /** Called when one was removed. */
  readonly onStopped: (id: string) => Promise<void>;
}

/** Pauses, resumes and ends containers, and keeps work inside of them and pauses apart. */
export class ContainerLife {
  readonly #context: GvisorContext;
  readonly #options: ContainerLifeOptions;
  /** What runs inside and cannot come to its end while the container is paused. */
  readonly #working = new Map<string, Set<Promise<void>>>();
  readonly #pausing = new Set<string>();

  constructor(context: GvisorContext, options: ContainerLifeOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Brings a live container into a status, or leaves it there. A pause waits for the work that goes on inside. */
  async bringTo(id: string, status: "running" | "paused", signal: AbortSignal): Promise<void> {
    await this.#options.lock.run(id, async () => {
      const state = await liveState(this.#context, id);
      if (state === undefined) throw lost(id);
      if (state.status === status) return;
      if (status === "paused") await this.#pause(id, signal);
      else await this.#control(id, "resume", signal);
    });
  }

  async stop(id: string, signal?: AbortSignal): Promise<void> {
    await withinStopLimit(id, signal, async (limit) => {
      const end = async (): Promise<void> => {
        if ((await noteDeath(this.#context, id)) === "alive") this.#options.onStopping(id);
        await removeContainer(this.#context, id, limit);
        await this.#options.onStopped(id);
      };
      await this.#options.lock.run(id, end, limit);
    });
  }

  async isLive(id: string): Promise<boolean> {
    return (await liveState(this.#context, id)) !== undefined;
  }

  /** Does the work while the container runs; one that was paused is paused again. */
  async thawed(id: string, work: () => Promise<void>): Promise<void> {
    if (!this.#pausing.has(id) && (await this.#workUnlessPaused(id, work)) === "done") return;
    await this.#options.lock.run(id, async () => {
      if ((await liveState(this.#context, id))?.status !== "paused") {
        await work();
        return;
      }
      try {
        await this.#control(id, "resume", AbortSignal.timeout(CONTROL_DEADLINE_MS));
        await work();
      } finally {
        const status = (await liveState(this.#context, id))?.status;
        if (status === "running") await this.#control(id, "pause", AbortSignal.timeout(CONTROL_DEADLINE_MS));
      }
    });
  }

  /** It counts as at work from its look on: a pause that begins in between waits for it. */
  async #workUnlessPaused(id: string, work: () => Promise<void>): Promise<"done" | "paused"> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const working = this.#working.get(id) ?? new Set();
    this.#working.set(id, working.add(over));
    try {
      if ((await liveState(this.#context, id))?.status === "paused") return "paused";
      await work();
      return "done";
    } finally {
      resolve();
      working.delete(over);
      if (working.size === 0 && this.#working.get(id) === working) this.#working.delete(id);
    }
  }

  async #pause(id: string, signal: AbortSignal): Promise<void> {
    this.#pausing.add(id);
    try {
      await Promise.all([...(this.#working.get(id) ?? [])]);
      await this.#control(id, "pause", signal);
    } finally {
      this.#pausing.delete(id);
    }
  }

  async #control(id: string, subcommand: "pause" | "resume", signal: AbortSignal): Promise<void> {
    const command = runsc(this.#context, [subcommand, id], CONTROL_DEADLINE_MS);
    const { exitCode, stderr } = await this.#context.runner.run(command, { signal });
    if (exitCode === 0) return;
    if ((await liveState(this.#context, id)) === undefined) throw lost(id);
    const cause = new Error(stderr.trim());
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} did not ${subcommand}`, { cause });
  }
}
