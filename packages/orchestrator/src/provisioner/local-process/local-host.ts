import { type Clock, hasReason, type Log, SandboxError } from "@turnbox/core";
import type { Machine, MachineState, Tags } from "../provisioner.ts";
import { type HostProcess, type HostProcessSpec, startHostProcess } from "./host-process.ts";
import { untilStill } from "./heartbeat.ts";

/** How long to wait after the first, second, ... failed start in a row; the last one holds for all further ones. */
const RESTART_DELAYS_MS: readonly number[] = [1000, 2000, 5000, 10_000, 30_000];

export interface LocalHostOptions {
  readonly instanceId: string;
  readonly tags: Tags;
  readonly spec: HostProcessSpec;
  readonly clock: Clock;
  readonly logger: Log;
  /** Called after each change of what `describe` says. */
  readonly onChange: () => void;
}

/** The run that is wanted: from a start to a stop. Aborting it ends the start or the restarts that are under way. */
interface Run {
  readonly over: AbortController;
  /** Settles with the first announcement, or with why there was none. */
  readonly first: Promise<void>;
  /** Settles when the process is gone and nothing will start another one; never rejects. */
  readonly done: Promise<void>;
}

/**
 * One sandbox-host on this machine, kept up while it is wanted. A host that had come up and dies is started again at once, under the
 * same id and on the same data, with another url; so is one whose event loop stands still, which is ended first. Starts that fail
 * are repeated after a growing delay. Only the very first start may fail for good.
 */
export class LocalHost {
  readonly #options: LocalHostOptions;
  readonly #launchedAtMs: number;
  #run: Run | undefined;
  #state: MachineState = "pending";
  #url: string | undefined;
  #problem: string | undefined;

  constructor(options: LocalHostOptions) {
    this.#options = options;
    this.#launchedAtMs = options.clock.nowMs();
  }

  describe(): Machine {
    const { instanceId, tags } = this.#options;
    return {
      instanceId,
      state: this.#state,
      url: this.#url,
      tags,
      launchedAtMs: this.#launchedAtMs,
      problem: this.#problem,
      image: "",
      interruption: undefined,
    };
  }

  /** Returns when the host announced itself; joins a start that is under way. */
  async start(): Promise<void> {
    this.#run ??= this.#begin();
    await this.#run.first;
  }

  /** Returns when the process is gone. */
  async stop(last: "stopped" | "terminated"): Promise<void> {
    const run = this.#run;
    if (run !== undefined) {
      this.#set(last === "stopped" ? "stopping" : "terminating", undefined);
      run.over.abort(new SandboxError("CANCELLED", "the host is being stopped"));
      await run.done;
      if (this.#run === run) this.#run = undefined;
    }
    this.#set(last, undefined);
  }

  #begin(): Run {
    const over = new AbortController();
    const first = Promise.withResolvers<void>();
    first.promise.catch(() => undefined);
    const done = this.#supervise(over.signal, first).catch((error: unknown) => {
      this.#options.logger.error({ err: error }, "the supervision of a host failed");
    });
    return { over, first: first.promise, done };
  }

  async #supervise(signal: AbortSignal, first: PromiseWithResolvers<void>): Promise<void> {
    const { clock, logger, spec } = this.#options;
    let failures = 0;
    let everReady = false;
    this.#set("pending", undefined);
    const isOver = (): boolean => signal.aborted;
    while (!isOver()) {
      try {
        const host = await startHostProcess(spec, { clock, signal });
        everReady = true;
        failures = 0;
        this.#problem = undefined;
        this.#set("running", host.url);
        logger.info({ url: host.url, hostPid: host.pid }, "the host is ready");
        first.resolve();
        const end = await endOf(host, { clock, signal });
        if (isOver()) return;
        // It comes back in a moment: that is no problem yet.
        this.#set("pending", undefined);
        logger.warn({ end }, "the host ended; it is started again");
      } catch (error) {
        this.#problem = SandboxError.from(error).message;
        if (!everReady) {
          this.#run = undefined;
          this.#set("stopped", undefined);
          first.reject(error);
          return;
        }
        if (isOver()) return;
        failures += 1;
        const delayMs = restartDelayMs(failures);
        this.#set("pending", undefined);
        logger.warn({ problem: this.#problem, failures, delayMs }, "the host does not start; it is tried again");
        await clock.sleep(delayMs, { signal }).catch(ignoreAbort);
      }
    }
  }

  #set(state: MachineState, url: string | undefined): void {
    this.#state = state;
    this.#url = url;
    this.#options.onChange();
  }
}

/** Waits until the host ended, or ends it when it is no longer wanted or stands still; returns how it ended. */
async function endOf(
  host: HostProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<string> {
  const over = new AbortController();
  const unwanted = Promise.withResolvers<void>();
  const onAbort = (): void => {
    unwanted.resolve();
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  let why = "";
  if (host.beats !== undefined) {
    untilStill({ beats: host.beats, clock }, { signal: AbortSignal.any([signal, over.signal]) }).then(
      () => {
        why = " because its event loop stood still";
        host.kill();
      },
      () => undefined,
    );
  }
  await Promise.race([host.exited, unwanted.promise]);
  over.abort();
  signal.removeEventListener("abort", onAbort);
  if (signal.aborted) await host.stop();
  return `the host ${await host.exited}${why}`;
}

function ignoreAbort(error: unknown): void {
  if (hasReason(error, "CANCELLED") || (error instanceof Error && error.name === "AbortError")) return;
  throw error;
}

/** How long to wait after the failed start number `failures` in a row (the first is 1). */
function restartDelayMs(failures: number): number {
  return RESTART_DELAYS_MS[Math.min(Math.max(failures, 1), RESTART_DELAYS_MS.length) - 1] ?? 0;
}
