import type { Clock, Log } from "@turnbox/core";
import type { Containers } from "../container/container.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Session } from "../session/session.ts";
import { JournalBound } from "./journal-bound.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";

const LOOK_EVERY_MS = 100;
const PAUSE_AFTER_FAILURE_MS = 1000;
const LIVENESS_TIMEOUT_MS = 30_000;
const CONNECT_MS = 500;
const PROBE_EVERY_MS = 200;

interface Deps {
  readonly processes: Processes;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly events: SessionEvents;
  readonly clock: Clock;
  readonly log: Log;
  /** The program that connects to a port inside, and ends at once if it is refused. */
  readonly relay: (port: number) => readonly [string, ...string[]];
  /** See `JournalBound`; for tests. */
  readonly highWaterBytes?: number;
}

/**
 * Watches launched processes until disposed: records their ends, bounds their journals, probes their ports, and removes what
 * belongs to destroyed sessions. Each process is examined by itself, so that none waits for another.
 */
export class ProcessWatch implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #bound: JournalBound;
  readonly #left: LeftContainers;
  readonly #busy = new Map<LaunchedProcess, Promise<void>>();
  readonly #listener: ReturnType<SessionEvents["listen"]>;
  readonly #stop = new AbortController();
  readonly #work: Promise<unknown>;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#bound = new JournalBound(deps);
    this.#left = new LeftContainers(
      deps,
      deps.processes.living().map(([, process]) => process),
    );
    this.#listener = deps.events.listen();
    this.#work = Promise.all([this.#loop(), this.#forgetDestroyed()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#listener[Symbol.dispose]();
    await this.#work;
    await Promise.all(this.#busy.values());
  }

  async #loop(): Promise<void> {
    const { processes, clock } = this.#deps;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      for (const [session, process] of processes.living()) {
        if (this.#busy.has(process)) continue;
        const work = this.#examine(session, process).finally(() => void this.#busy.delete(process));
        this.#busy.set(process, work);
      }
      await clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
    }
  }

  async #forgetDestroyed(): Promise<void> {
    const { processes, log } = this.#deps;
    for (;;) {
      const event = await this.#listener.next(this.#stop.signal);
      if (event === undefined) return;
      if (event.kind !== "destroyed") continue;
      await processes.forgetSession(event.session).catch((err: unknown) => {
        // The next start removes it.
        log.warn({ err }, "output of a removed session is still there");
      });
    }
  }

  async #examine(session: Session, process: LaunchedProcess): Promise<void> {
    if (session.row.phase.kind === "destroying") return;
    const { processes, clock, log } = this.#deps;
    const { signal } = this.#stop;
    try {
      const timeout = AbortSignal.timeout(LIVENESS_TIMEOUT_MS);
      await this.#left.thaw(session, process, { signal: AbortSignal.any([signal, timeout]) });
      await this.#bound.releaseHeld(process);
      await processes.settle(session, process, { signal });
      if (process.row.end !== null) return;
      await this.#bound.enforce(process, { signal });
      if (process.row.ready === "no" && process.row.started === "yes") await this.#probePort(process);
    } catch (err) {
      if (signal.aborted) return;
      const { processId } = process.row;
      log.warn({ err, sessionId: session.row.id, processId }, "a process could not be examined");
      await clock.sleep(PAUSE_AFTER_FAILURE_MS, { signal }).catch(() => undefined);
    }
  }

  /** A connection that is made, or not refused within a moment, shows that the port accepts. */
  async #probePort(process: LaunchedProcess): Promise<void> {
    const { runtime, processes, clock, relay } = this.#deps;
    const { signal } = this.#stop;
    const { container, port } = process.row;
    const spec = { argv: relay(port), env: {}, cwd: "/", deadlineMs: CONNECT_MS };
    const probe = await runtime.exec(container, spec, { signal });
    probe.stdin.on("error", () => undefined);
    probe.stdin.end();
    probe.stdout.resume();
    probe.stderr.resume();
    const exit = await probe.exit;
    const isAccepted = exit.kind === "timed_out" || (exit.kind === "exited" && exit.exitCode === 0);
    if (isAccepted && process.row.end === null) await processes.commit(process, { ...process.row, ready: "yes" });
    else await clock.sleep(PROBE_EVERY_MS, { signal }).catch(() => undefined);
  }
}

/** Containers of processes that an earlier service has left. The runtime may have frozen them because their output was not read. */
export class LeftContainers {
  readonly #runtime: Runtime;
  readonly #containers: Containers;
  readonly #due: WeakSet<LaunchedProcess>;

  constructor(
    { runtime, containers }: { readonly runtime: Runtime; readonly containers: Containers },
    left: Iterable<LaunchedProcess>,
  ) {
    this.#runtime = runtime;
    this.#containers = containers;
    this.#due = new WeakSet(left);
  }

  /** Thaws the container of such a process, once. One that is frozen later, or while an operation holds the gate, stays so. */
  async thaw(session: Session, process: LaunchedProcess, call: { readonly signal: AbortSignal }): Promise<void> {
    if (!this.#due.has(process) || session.gate.isClosed) return;
    const { container, phase } = session.row;
    if (phase.kind === "active" && container !== null) {
      using _inside = session.gate.enter();
      if ((await this.#runtime.liveness(container, call)) === "paused") {
        this.#containers.suspect(session);
        await this.#containers.ensure(session, call);
      }
    }
    this.#due.delete(process);
  }
}
