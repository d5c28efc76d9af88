import { type Clock, hasReason, type Log, SandboxError } from "@turnbox/core";
import type { FencedHostCall } from "../../control/host-connection.ts";
import type { Provisioner } from "../../provisioner/provisioner.ts";
import type { InstanceRow, Store } from "../../store/store.ts";
import { fleetTags } from "../registry/fleet-tags.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { Job } from "./jobs.ts";
import type { Lead } from "./leadership.ts";
import type { Action } from "./phase.ts";

export interface LauncherOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly provisioner: Provisioner;
  readonly clock: Clock;
  readonly logger: Log;
  /** An id for a machine to be launched that is none of those taken. */
  readonly newInstanceId: (taken: ReadonlySet<string>) => string;
  /** Called when a machine was launched or ended, so that the next look need not be waited for. */
  readonly onDone?: () => void;
  readonly isFree: (instanceId: string) => boolean;
  readonly startJob: (job: Job, lead: Lead) => void;
}

/** How often a launch whose answer was lost is asked for, under the same id. */
const TRIES = 3;
const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 120_000;

/**
 * Launches machines under ids that are on record beforehand: one whose answer was lost is found again by its id, and
 * counts as booting meanwhile. After a launch that was refused, the next waits a while, longer each time.
 */
export class Launcher {
  readonly #options: LauncherOptions;
  #refusals = 0;
  #pausedUntilMs = 0;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** Returns when the instance is on record; the launch itself goes on as a job. */
  async launch({ image, why }: Action & { readonly kind: "launch" }, lead: Lead): Promise<void> {
    const { registry, store, clock, logger, newInstanceId, isFree, startJob } = this.#options;
    if (clock.monotonicMs() < this.#pausedUntilMs) return;
    const instanceId = newInstanceId(new Set(registry.allIds()));
    if (!isFree(instanceId)) return;
    const row: InstanceRow = {
      instanceId,
      admission: "open",
      labels: {},
      createdAtMs: clock.nowMs(),
      image,
      drain: undefined,
      goal: "running",
      hasAnswered: false,
      version: 0,
    };
    if ((await store.putInstance(row, lead)) === "changed") return;
    registry.adoptRow({ ...row, version: 1 });
    logger.info({ instanceId, why }, "launches an instance");
    startJob({ instanceId, work: (call) => this.#make(row, call, lead) }, lead);
  }

  async #make(row: InstanceRow, call: FencedHostCall, lead: Lead): Promise<void> {
    const { registry, store, onDone } = this.#options;
    try {
      await this.#ask(row, call);
      this.#refusals = 0;
      onDone?.();
    } catch (error) {
      this.#pause();
      // What may have been made stays on record: it shows up, or is ended when its time is over.
      if (SandboxError.from(error).admitted === "no" && !hasReason(error, "CANCELLED", "DEADLINE_EXCEEDED")) {
        await store.deleteInstance(row.instanceId, lead);
        await registry.drop(row.instanceId);
      }
      throw error;
    }
  }

  async #ask({ instanceId, image }: InstanceRow, call: FencedHostCall): Promise<void> {
    const { registry, provisioner } = this.#options;
    const tags = fleetTags(registry.fleetId);
    for (let left = TRIES; ; left -= 1) {
      try {
        await provisioner.launch({ instanceId, tags, ...(image === "" ? {} : { image }) }, call);
        return;
      } catch (error) {
        if (left <= 1 || SandboxError.from(error).admitted !== "unknown" || call.signal.aborted) throw error;
      }
    }
  }

  #pause(): void {
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#refusals, LONGEST_PAUSE_MS);
    this.#pausedUntilMs = this.#options.clock.monotonicMs() + pauseMs;
    this.#refusals += 1;
  }
}
