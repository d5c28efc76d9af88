import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Records } from "../record/records.ts";
import type { ProcessEnd, ProcessRow } from "../record/row.ts";
import type { ProcessLife, Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { createJournal, LOCAL_OUTPUT } from "./journal.ts";
import { createLaunchedProcess, type LaunchedProcess, type ProcessPlace } from "./launched-process.ts";
import type { StoredJournals } from "./stored-journal.ts";

/** How many processes of a session are remembered, ended ones included. */
export const MAX_PROCESSES = 1000;
/** How long an ended one is kept at least, unless its output is in the way. */
const KEEP_MS = 10 * 60_000;
/** How much the output of all ended processes of a session may take. */
const MAX_ENDED_BYTES = 256 * 1024 * 1024;

interface Call {
  readonly signal: AbortSignal;
}

/** The launched processes of all sessions, those that have ended lately included. */
export interface Processes {
  /** Takes up what an earlier service has left: processes that run, and those that a crash cut off. */
  load(call: Call): Promise<void>;
  /** Of the session's present generation, oldest first. */
  list(session: Session): readonly LaunchedProcess[];
  /** Of any generation that is remembered, or `PROCESS_NOT_FOUND`. */
  get(session: Session, processId: string): LaunchedProcess;
  /** Every process that is not known to have ended. */
  living(): readonly (readonly [Session, LaunchedProcess])[];
  /** Makes a place for one more, forgetting the oldest ended ones; `OVERLOADED` if there is none to forget, or too many run. */
  makeRoom(session: Session): Promise<void>;
  /** Makes the place of a process, empty. */
  prepare(row: ProcessRow): Promise<LaunchedProcess>;
  add(session: Session, process: LaunchedProcess): void;
  /** The row as it is from now on. */
  commit(process: LaunchedProcess, row: ProcessRow): Promise<void>;
  /** Looks how the process is, and records its end where it has ended. */
  settle(session: Session, process: LaunchedProcess, call: Call): Promise<void>;
  /** Forgets a process with its output, and the receipt of its launch where that had no effect. */
  forget(session: Session, process: LaunchedProcess, receipt: "keep" | "forget"): Promise<void>;
  /** Forgets all of a session that is gone. */
  forgetSession(session: Session): Promise<void>;
}

export function createProcesses(deps: {
  readonly directory: string;
  readonly journals: StoredJournals;
  /** How many of one session run at once: each takes a few processes of the machine too. */
  readonly maxRunning: number;
  readonly records: Records;
  readonly registry: Registry;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
}): Processes {
  const { records, registry, runtime, containers, clock, log } = deps;
  const known = new Map<Session, Map<string, LaunchedProcess>>();
  const of = (session: Session): readonly LaunchedProcess[] => [...(known.get(session)?.values() ?? [])];
  const directoryOf = ({ token, processId }: Pick<ProcessRow, "token" | "processId">): string =>
    join(deps.directory, token, processId);
  /** What a terminal shows is written by the service itself, next to the rest. */
  const isStored = (row: ProcessRow): boolean =>
    row.terminal === null && !existsSync(join(directoryOf(row), LOCAL_OUTPUT));
  const placeOf = (row: ProcessRow): ProcessPlace => {
    const directory = directoryOf(row);
    return { directory, journal: isStored(row) ? deps.journals.of(row) : createJournal(directory) };
  };

  const add = (session: Session, process: LaunchedProcess): void => {
    const own = known.get(session) ?? new Map<string, LaunchedProcess>();
    own.set(process.row.processId, process);
    known.set(session, own);
  };
  const commit = async (process: LaunchedProcess, row: ProcessRow): Promise<void> => {
    await records.call("putProcess", row);
    process.row = row;
  };
  const removeFiles = async (row: ProcessRow): Promise<void> => {
    if (isStored(row)) await deps.journals.of(row).remove();
    await rm(directoryOf(row), { recursive: true, force: true });
  };
  const forget = async (session: Session, process: LaunchedProcess, receipt: "keep" | "forget"): Promise<void> => {
    const { token, processId, receipt: mark } = process.row;
    const forgotten = receipt === "forget" && mark !== null ? { receipt: mark } : {};
    await records.call("forgetProcess", { token, processId, ...forgotten });
    known.get(session)?.delete(processId);
    await removeFiles(process.row);
  };

  const settle = async (session: Session, process: LaunchedProcess, call: Call): Promise<void> => {
    const { row } = process;
    if (row.end !== null || row.started === "no" || process.terminal !== null) return;
    const life = await runtime.inspect(row.container, process.spawned, call);
    const end = endOf(life, { row, session });
    if (end === null || process.row.end !== null) return;
    if (row.container === session.row.container && (end.reason === "oom" || end.reason === "sandbox_lost"))
      containers.suspect(session);
    await commit(process, { ...process.row, end: { ...end, atMs: clock.nowMs() } });
    log.info({ sessionId: session.row.id, processId: row.processId, reason: end.reason }, "a process has ended");
  };

  /** What a crash has left of one process. */
  const takeUp = async (session: Session, process: LaunchedProcess, call: Call): Promise<void> => {
    const { row } = process;
    if (row.end !== null) return;
    if (row.terminal !== null) {
      const end = { reason: "terminal_closed", exitCode: null, signal: null, atMs: clock.nowMs() } as const;
      await commit(process, { ...row, end });
      return;
    }
    await runtime.tend(process.spawned, call);
    if (row.started === "yes") return;
    // Nobody was told of it. If it came to run, it goes on; if not, its launch may come again.
    const life = await runtime.inspect(row.container, process.spawned, call);
    if (life.kind === "unknown" || life.kind === "sandbox_lost") await forget(session, process, "forget");
    else await commit(process, { ...row, started: "yes" });
  };

  const load = async (call: Call): Promise<void> => {
    const sessions = new Map(registry.all().map((session) => [session.row.token, session]));
    for (const row of await records.call("listProcesses", null)) {
      const session = sessions.get(row.token);
      if (session === undefined) continue;
      const process = createLaunchedProcess(row, placeOf(row), clock);
      add(session, process);
      try {
        await process.journal.recover();
        await takeUp(session, process, call);
      } catch (err) {
        log.error({ err, sessionId: session.row.id, processId: row.processId }, "a process cannot be taken up");
      }
    }
    await removeStrays(sessions);
  };

  /** Files of sessions and processes that are gone. */
  const removeStrays = async (sessions: ReadonlyMap<string, Session>): Promise<void> => {
    await mkdir(deps.directory, { recursive: true, mode: 0o700 });
    for (const token of await readdir(deps.directory)) {
      const session = sessions.get(token);
      const own = session === undefined ? undefined : known.get(session);
      for (const processId of await readdir(join(deps.directory, token)))
        if (own?.has(processId) !== true) await rm(directoryOf({ token, processId }), { recursive: true, force: true });
      if (own === undefined) await rm(join(deps.directory, token), { recursive: true, force: true });
    }
  };

  const makeRoom = async (session: Session): Promise<void> => {
    const running = of(session).filter(({ row }) => row.end === null);
    if (running.length >= deps.maxRunning)
      throw new SandboxError("OVERLOADED", `the session runs ${running.length} processes, as many as it may`, {
        admitted: "no",
      });
    const ended = of(session).filter(({ row }) => row.end !== null);
    const oldMs = clock.nowMs() - KEEP_MS;
    let bytes = ended.reduce((sum, { journal }) => sum + journal.keptBytes, 0);
    for (const process of ended) {
      const isMany = of(session).length >= MAX_PROCESSES && (process.row.end?.atMs ?? 0) < oldMs;
      if (!isMany && bytes <= MAX_ENDED_BYTES) continue;
      bytes -= process.journal.keptBytes;
      await forget(session, process, "keep");
    }
    if (of(session).length < MAX_PROCESSES) return;
    throw new SandboxError("OVERLOADED", `the session has ${MAX_PROCESSES} processes, the most that are kept`, {
      admitted: "no",
    });
  };

  return {
    load,
    list: (session) => of(session).filter(({ row }) => row.generation === session.row.generation),
    get: (session, processId) => {
      const process = known.get(session)?.get(processId);
      if (process === undefined) {
        throw new SandboxError("PROCESS_NOT_FOUND", "there is no such process", { metadata: { processId } });
      }
      return process;
    },
    living: () =>
      [...known].flatMap(([session, own]) =>
        [...own.values()].filter(({ row }) => row.end === null).map((process) => [session, process] as const),
      ),
    makeRoom,
    prepare: async (row) => {
      const place = placeOf(row);
      await mkdir(place.directory, { recursive: true, mode: 0o700 });
      if (isStored(row)) await deps.journals.of(row).make();
      return createLaunchedProcess(row, place, clock);
    },
    add,
    commit,
    settle,
    forget,
    forgetSession: async (session) => {
      known.delete(session);
      deps.journals.forget(session.row.token);
      await rm(join(deps.directory, session.row.token), { recursive: true, force: true });
    },
  };
}

/**
 * What a process's life means for its session; null where it goes on. A process of an earlier head was stopped by the
 * rollback that made the present one, unless it had exited before; one of another container went down with it.
 */
function endOf(
  life: ProcessLife,
  { row, session }: { readonly row: ProcessRow; readonly session: Session },
): Omit<ProcessEnd, "atMs"> | null {
  const none = { exitCode: null, signal: null };
  if (life.kind === "exited") return { reason: "exited", exitCode: life.exitCode, signal: null };
  if (row.headGeneration !== session.row.headGeneration) return { reason: "stopped", ...none };
  switch (life.kind) {
    case "running":
      return row.container === session.row.container ? null : { reason: "sandbox_lost", ...none };
    case "signaled":
      return { reason: "signaled", exitCode: null, signal: life.signal };
    case "oom":
      return { reason: "oom", ...none };
    case "sandbox_lost":
      return { reason: "sandbox_lost", ...none };
    case "unknown":
      return { reason: "exited", ...none };
  }
}
