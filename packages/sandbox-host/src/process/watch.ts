import { rm, stat, writeFile } from "node:fs/promises";
import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Session } from "../session/session.ts";
import { heldMark, type LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";
import { createThaw } from "./thaw.ts";

/** What the output of one process may take before the process is stopped for as long as it takes to make room. */
const HIGH_WATER_BYTES = 16 * 1024 * 1024;
/** How much of it is kept as the older part. */
const KEEP_BYTES = 16 * 1024 * 1024;
/** How long a reader that follows may hold the process up before it loses what it has not read. */
const READER_PATIENCE_MS = 10_000;
const LOOK_EVERY_MS = 100;
/** A journal that does not grow is passed over in up to so many rounds; the storage bounds what it may do meanwhile. */
const MOST_PASSES = 4;
const POLL_MS = 20;
const CONNECT_MS = 500;
const PROBE_EVERY_MS = 200;
const SIGNAL_TIMEOUT_MS = 30_000;
const SIGCONT = 18;
const SIGSTOP = 19;

interface Deps {
  readonly processes: Processes;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly events: SessionEvents;
  readonly clock: Clock;
  readonly log: Logger;
  readonly relay: (port: number) => readonly [string, ...string[]];
  /** For tests. */
  readonly highWaterBytes?: number;
}

/**
 * Looks after launched processes until disposed: notices their ends, bounds their journals, and removes what belongs to
 * sessions that are gone. Each process is looked at by itself, so that none waits for another.
 */
export function startProcessWatch(deps: Deps): AsyncDisposable {
  const stop = new AbortController();
  const { signal } = stop;
  const busy = new Map<LaunchedProcess, Promise<void>>();
  const pace = createPace();
  const living = deps.processes.living().map(([, process]) => process);
  const thaw = createThaw(deps, living);
  const listener = deps.events.listen();

  const look = async (session: Session, process: LaunchedProcess): Promise<void> => {
    if (session.row.phase.kind === "destroying") return;
    try {
      await thaw.look(session, process, { signal: AbortSignal.any([signal, AbortSignal.timeout(SIGNAL_TIMEOUT_MS)]) });
      await letGoOn(deps, process);
      await deps.processes.settle(session, process, { signal });
      if (process.row.end !== null) return;
      if (pace.isDue(process)) await bound(deps, process, { signal, pace });
      if (process.row.ready === "no" && process.row.started === "yes") await lookReady(deps, process, signal);
    } catch (err) {
      if (signal.aborted) return;
      deps.log.warn(
        { err, sessionId: session.row.id, processId: process.row.processId },
        "a process was not looked at",
      );
      await deps.clock.sleep(1000, { signal }).catch(() => undefined);
    }
  };
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      for (const [session, process] of deps.processes.living()) {
        if (busy.has(process)) continue;
        const work = look(session, process).finally(() => void busy.delete(process));
        busy.set(process, work);
      }
      await deps.clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
    }
  };
  const hear = async (): Promise<void> => {
    for (;;) {
      const event = await listener.next(signal);
      if (event === undefined) return;
      if (event.kind !== "destroyed") continue;
      await deps.processes.forgetSession(event.session).catch((err: unknown) => {
        // The next start finds what is left.
        deps.log.warn({ err }, "output of a removed session is still there");
      });
    }
  };
  const work = Promise.all([loop(), hear()]);
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      listener[Symbol.dispose]();
      await work;
      await Promise.all(busy.values());
    },
  };
}

/** A connection that is made, or not refused within a moment, says that the port accepts. */
async function lookReady(deps: Deps, process: LaunchedProcess, signal: AbortSignal): Promise<void> {
  const { runtime, processes, clock } = deps;
  const { container, port } = process.row;
  const spec = { argv: deps.relay(port), env: {}, cwd: "/", deadlineMs: CONNECT_MS };
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

/** A process that was stopped by an earlier service, or could not be let go on before, goes on. */
async function letGoOn({ runtime }: Deps, process: LaunchedProcess): Promise<void> {
  if (process.held === "no") return;
  if ((await stat(heldMark(process)).catch(() => undefined)) !== undefined) await release(runtime, process);
  process.held = "no";
}

async function release(runtime: Runtime, process: LaunchedProcess): Promise<void> {
  const call = { signal: AbortSignal.timeout(SIGNAL_TIMEOUT_MS) };
  await runtime.signal(process.row.container, process.spawned, { signal: SIGCONT, scope: "tree" }, call);
  await rm(heldMark(process), { force: true });
  process.held = "no";
}

async function bound(
  deps: Deps,
  process: LaunchedProcess,
  { signal, pace }: { readonly signal: AbortSignal; readonly pace: Pace },
): Promise<void> {
  const { runtime, clock } = deps;
  const liveBytes = await process.journal.liveBytes();
  pace.note(process, liveBytes);
  if (liveBytes < (deps.highWaterBytes ?? HIGH_WATER_BYTES)) return;
  const call = { signal: AbortSignal.timeout(SIGNAL_TIMEOUT_MS) };
  if (process.terminal === null) {
    process.held = "unknown";
    await writeFile(heldMark(process), "", { mode: 0o600 });
    await runtime.signal(process.row.container, process.spawned, { signal: SIGSTOP, scope: "tree" }, call);
  }
  try {
    await readersDone(process, { clock, signal });
    await process.journal.rotate(Math.min(KEEP_BYTES, deps.highWaterBytes ?? KEEP_BYTES));
  } finally {
    if (process.terminal === null) await release(runtime, process);
  }
}

interface Pace {
  /** Whether the journal is to be looked at in this round. */
  isDue(process: LaunchedProcess): boolean;
  note(process: LaunchedProcess, liveBytes: number): void;
}

function createPace(): Pace {
  const seen = new WeakMap<LaunchedProcess, { readonly bytes: number; readonly passes: number; left: number }>();
  return {
    isDue: (process) => {
      const last = seen.get(process);
      if (last === undefined || last.left === 0) return true;
      last.left -= 1;
      return false;
    },
    note: (process, bytes) => {
      const last = seen.get(process);
      const passes = last?.bytes === bytes ? Math.min(last.passes + 1, MOST_PASSES) : 0;
      seen.set(process, { bytes, passes, left: passes });
    },
  };
}

/** Settles when all that follow have read everything, or have had the time to. */
async function readersDone(
  process: LaunchedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const { end } = await process.journal.extent();
  const untilMs = clock.monotonicMs() + READER_PATIENCE_MS;
  const isBehind = (): boolean => [...process.followers].some(({ position }) => position < end);
  while (isBehind() && clock.monotonicMs() < untilMs && !signal.aborted) {
    await clock.sleep(POLL_MS, { signal }).catch(() => undefined);
  }
}
