import { type Clock, type Log, runEvery, SandboxError } from "@turnbox/core";
import type { Background } from "./background.ts";
import type { Fleet } from "./fleet/fleet.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** An orchestrator that listens. Disposing it drains the calls, stops the hosts and closes the store, in this order. */
export interface Orchestrator extends AsyncDisposable {
  readonly url: string;
  /**
   * Starts the hosts of this machine and the control loop. For a new fleet it returns when the first such host is ready to
   * take sandboxes, and throws when none can be. A fleet that comes back serves at once: calls wait for their hosts.
   * Hosts elsewhere are not waited for.
   */
  launchHosts(call: Call): Promise<void>;
  /** Aborts, with the reason, if the fleet came back and none of the hosts of this machine did. */
  readonly failure: AbortSignal;
}

/** The hosts that run on this machine. */
export interface LocalHosts {
  /** Launches them at once; returns when the first is ready. */
  launch(call: Call): Promise<void>;
  /** Launches those again that are missing. */
  keep(call: Call): Promise<void>;
}

export interface RunningOrchestratorOptions {
  readonly url: string;
  readonly fleet: Fleet;
  readonly background: Background;
  /** Undefined if all hosts are elsewhere. */
  readonly localHosts: LocalHosts | undefined;
  /** Called when it serves. */
  readonly onServing: () => void;
  readonly clock: Clock;
  readonly log: Log;
  /** All that it is made of. */
  readonly owned: AsyncDisposable;
}

const FIRST_ANSWER_MS = 15_000;
const FIRST_ANSWER_POLL_MS = 250;
const KEEP_INTERVAL_MS = 30_000;

export class RunningOrchestrator implements Orchestrator {
  readonly url: string;
  readonly #options: RunningOrchestratorOptions;
  readonly #failure = new AbortController();
  #state: "starting" | "serving" = "starting";

  constructor(options: RunningOrchestratorOptions) {
    this.url = options.url;
    this.#options = options;
  }

  get failure(): AbortSignal {
    return this.#failure.signal;
  }

  async launchHosts(call: Call): Promise<void> {
    const { fleet, background, localHosts, onServing } = this.#options;
    if (localHosts !== undefined) {
      const isNew = fleet.registry.allIds().length === 0;
      const up = this.#launch(localHosts, call);
      if (isNew) await up;
      else background.run(() => up.catch((error: unknown) => this.#fail(error)));
      await fleet.registry.sync(call);
    }
    background.run((run) => fleet.run(run));
    this.#state = "serving";
    onServing();
  }

  /** A machine has changed: the next look at the fleet need not wait for its time. */
  lookNow(): void {
    const { fleet, background, localHosts } = this.#options;
    if (this.#state === "starting" || background.signal.aborted) return;
    fleet.loop.wake();
    // Callers may wait for a host of this machine, and asking it costs next to nothing.
    if (localHosts !== undefined) fleet.registry.refresh({ signal: background.signal }).catch(() => undefined);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#options.owned[Symbol.asyncDispose]();
  }

  async #launch(hosts: LocalHosts, call: Call): Promise<void> {
    const { background, clock, log } = this.#options;
    await hosts.launch(call);
    await this.#untilAnswered(call);
    background.run(({ signal }) =>
      runEvery((round) => hosts.keep(round), {
        clock,
        signal,
        intervalMs: KEEP_INTERVAL_MS,
        onFailure: (failure) => {
          log.error({ err: SandboxError.from(failure) }, "the local hosts could not be kept");
        },
      }),
    );
  }

  /** Waits for the first host that has answered a question; one that announced itself and stays silent is no host. */
  async #untilAnswered(call: Call): Promise<void> {
    const { clock, fleet } = this.#options;
    const deadlineMs = clock.monotonicMs() + FIRST_ANSWER_MS;
    for (;;) {
      await fleet.registry.refresh(call);
      const instances = fleet.registry.instances();
      if (instances.some(({ health }) => health !== "unknown")) return;
      if (clock.monotonicMs() >= deadlineMs) {
        const why = instances.map(({ instanceId, message }) => `${instanceId}: ${message}`).join("; ");
        throw new SandboxError("HOST_UNREACHABLE", `no host answers (${why})`);
      }
      await clock.sleep(FIRST_ANSWER_POLL_MS, call);
    }
  }

  #fail(error: unknown): void {
    if (!this.#options.background.signal.aborted) this.#failure.abort(error);
  }
}
