import { SandboxError } from "@turnbox/core";
import type { ControlCall } from "../../packages/orchestrator/src/control/sandbox-control.ts";
import { callOrchestrator, type Serving } from "./fleet-gate.ts";
import type { Safety } from "./safety.ts";
import type { SimWorld } from "./world.ts";

export interface ClientOptions {
  readonly world: SimWorld;
  readonly safety: Safety;
  readonly name: string;
  /** Any orchestrator that serves at this moment; undefined where none does. */
  readonly anyone: () => Serving | undefined;
  /** How long the sandbox is held before it is destroyed; undefined means for good. */
  readonly holdMs: number | undefined;
  /** How often it is used in between. */
  readonly uses: number;
}

const CALL_TIMEOUT_MS = [5000, 90_000] as const;
const MAX_REFUSALS = 6;

/**
 * Somebody who wants one sandbox, uses it, and gives it back or keeps it. It repeats every call under the same key until
 * it knows what became of it, from whichever orchestrator answers.
 */
export class Client {
  readonly #options: ClientOptions;
  #phase: "creating" | "holding" | "destroying" | "done" = "creating";
  #last = "nothing yet";

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get isWaiting(): boolean {
    return this.#phase === "creating";
  }

  /** What it still waits for, for people; undefined where it waits for nothing. */
  get pending(): string | undefined {
    const isIdle = this.#phase === "done" || this.#phase === "holding";
    return isIdle ? undefined : `${this.#options.name} is ${this.#phase}, last heard: ${this.#last}`;
  }

  async run(): Promise<void> {
    const sandboxId = await this.#create();
    if (sandboxId === undefined) {
      this.#phase = "done";
      return;
    }
    this.#phase = "holding";
    const { holdMs, uses } = this.#options;
    for (let use = 0; use < uses; use += 1) {
      await this.#sleep((holdMs ?? 600_000) / (uses + 1));
      await this.#use(sandboxId);
    }
    if (holdMs === undefined) return;
    await this.#sleep(holdMs / (uses + 1));
    this.#phase = "destroying";
    await this.#destroy(sandboxId);
    this.#phase = "done";
  }

  async #create(): Promise<string | undefined> {
    const { name, safety } = this.#options;
    const request = {
      idempotencyKey: name,
      labels: { client: name },
      template: "",
      resources: {},
      lifetime: {},
      env: {},
    };
    for (let refusals = 0; ; ) {
      try {
        const { sandboxId } = await this.#call(({ control }, call) => control.createSandbox(request, call));
        safety.acknowledged(name, sandboxId);
        this.#trace(`has ${sandboxId}`);
        return sandboxId;
      } catch (thrown) {
        const error = this.#heard(thrown);
        // An orchestrator that cannot look into its records says nothing about what was begun before.
        if (error.admitted === "no" && error.reason !== "STORE_UNAVAILABLE") refusals += 1;
        if (refusals >= MAX_REFUSALS) return undefined;
        await this.#sleep(error.retryAfterMs ?? 2000);
      }
    }
  }

  /** A sandbox that was promised can be reached again and again. */
  async #use(sandboxId: string): Promise<void> {
    const { safety } = this.#options;
    for (let tries = 0; tries < 5; tries += 1) {
      try {
        await this.#call(({ control }, call) => control.connectSandbox({ sandboxId }, call));
        return;
      } catch (thrown) {
        const error = this.#heard(thrown);
        if (error.reason === "SANDBOX_NOT_FOUND") {
          if (safety.isOwed(sandboxId)) safety.fail(`${sandboxId} was promised and is said not to be there`);
          return;
        }
        await this.#sleep(error.retryAfterMs ?? 3000);
      }
    }
  }

  async #destroy(sandboxId: string): Promise<void> {
    const { name, safety } = this.#options;
    const isOwed = safety.isOwed(sandboxId);
    safety.destroyAsked(sandboxId);
    const request = { sandboxId, idempotencyKey: `${name}-destroy` };
    for (let tries = 0; ; tries += 1) {
      try {
        await this.#call(({ control }, call) => control.destroySandbox(request, call));
        this.#trace("has given it back");
        return;
      } catch (thrown) {
        const error = this.#heard(thrown);
        if (error.reason === "SANDBOX_NOT_FOUND") {
          if (isOwed && tries === 0 && !safety.isLost(sandboxId)) {
            safety.fail(`${sandboxId} was promised and is said not to be there`);
          }
          return;
        }
        await this.#sleep(error.retryAfterMs ?? Math.min(3000 * 2 ** tries, 30_000));
      }
    }
  }

  async #call<T>(work: (serving: Serving, call: ControlCall) => Promise<T>): Promise<T> {
    const { world, anyone } = this.#options;
    for (;;) {
      const serving = anyone();
      if (serving !== undefined) {
        return await callOrchestrator(world, serving, { timeoutMs: world.chance.between(...CALL_TIMEOUT_MS), work });
      }
      await this.#sleep(1000);
    }
  }

  #heard(thrown: unknown): SandboxError {
    const error = SandboxError.from(thrown);
    this.#last = `${error.reason} (${error.admitted}): ${error.message}`;
    this.#trace(`hears ${error.reason}/${error.admitted}`);
    if (error.reason === "INTERNAL" || error.reason === "INVALID_ARGUMENT") {
      const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : error.message;
      this.#options.safety.fail(`${this.#options.name} hears ${error.reason}: ${cause}`);
    }
    return error;
  }

  #sleep(ms: number): Promise<void> {
    const { timeline, chance } = this.#options.world;
    return new Promise((resolve) => {
      timeline.after(ms * chance.between(0.8, 1.2), resolve);
    });
  }

  #trace(line: string): void {
    this.#options.world.trace.add(`${this.#options.name} ${line}`);
  }
}
