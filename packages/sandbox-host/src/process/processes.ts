import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Log, SandboxError } from "@turnbox/core";
import type { Containers } from "../container/container.ts";
import type { Records } from "../record/records.ts";
import type { ProcessRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import { DirectoryJournal, LOCAL_OUTPUT } from "./journal.ts";
import { createLaunchedProcess, type LaunchedProcess } from "./launched-process.ts";
import { endOfProcess } from "./process-end.ts";
import type { StoredJournals } from "./stored-journal.ts";

/** How many processes of a session are remembered, ended ones included. */
export const MAX_PROCESSES = 1000;
/** How long an ended one is kept at least, unless the output of ended ones is over its bound. */
const KEEP_MS = 10 * 60_000;
/** How much the output of all ended processes of a session may take. */
const MAX_ENDED_BYTES = 256 * 1024 * 1024;

interface Deps {
  /** Each process has a directory of its own in it, below that of its session. */
  readonly directory: string;
  readonly journals: StoredJournals;
  /** How many of one session run at once: each takes a few processes of the machine too. */
  readonly maxRunning: number;
  readonly records: Records;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Log;
}

type ProcessId = Pick<ProcessRow, "token" | "processId">;

/** The launched processes of all sessions, those that have ended lately included: in memory, in the records and on disk. */
export class Processes {
  readonly #deps: Deps;
  readonly #known = new Map<Session, Map<string, LaunchedProcess>>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Of the session's present generation, oldest first. */
  list(session: Session): readonly LaunchedProcess[] {
    return this.#of(session).filter(({ row }) => row.generation === session.row.generation);
  }

  /** Of any generation that is remembered, or `PROCESS_NOT_FOUND`. */
  get(session: Session, processId: string): LaunchedProcess {
    const process = this.#known.get(session)?.get(processId);
    if (process === undefined) {
      throw new SandboxError("PROCESS_NOT_FOUND", "there is no such process", { metadata: { processId } });
    }
    return process;
  }

  /** Every process that is not known to have ended. */
  living(): readonly (readonly [Session, LaunchedProcess])[] {
    return [...this.#known].flatMap(([session, own]) =>
      [...own.values()].filter(({ row }) => row.end === null).map((process) => [session, process] as const),
    );
  }

  /** Makes room for one more by forgetting the oldest ended ones; `OVERLOADED` if there is none to forget, or too many run. */
  async makeRoom(session: Session): Promise<void> {
    const running = this.#of(session).filter(({ row }) => row.end === null);
    if (running.length >= this.#deps.maxRunning)
      throw new SandboxError("OVERLOADED", `the session runs ${running.length} processes, as many as it may`, {
        admitted: "no",
      });
    const ended = this.#of(session).filter(({ row }) => row.end !== null);
    const oldMs = this.#deps.clock.nowMs() - KEEP_MS;
    let bytes = ended.reduce((sum, { journal }) => sum + journal.keptBytes, 0);
    for (const process of ended) {
      const isMany = this.#of(session).length >= MAX_PROCESSES && (process.row.end?.atMs ?? 0) < oldMs;
      if (!isMany && bytes <= MAX_ENDED_BYTES) continue;
      bytes -= process.journal.keptBytes;
      await this.forget(session, process, "keep");
    }
    if (this.#of(session).length < MAX_PROCESSES) return;
    throw new SandboxError("OVERLOADED", `the session has ${MAX_PROCESSES} processes, the most that are kept`, {
      admitted: "no",
    });
  }

  /** Makes the files of a process, empty. */
  async prepare(row: ProcessRow): Promise<LaunchedProcess> {
    await mkdir(this.#directoryOf(row), { recursive: true, mode: 0o700 });
    if (this.#isStored(row)) await this.#deps.journals.of(row).make();
    return this.open(row);
  }

  /** A process whose files are there. */
  open(row: ProcessRow): LaunchedProcess {
    const directory = this.#directoryOf(row);
    const journal = this.#isStored(row) ? this.#deps.journals.of(row) : new DirectoryJournal(directory);
    return createLaunchedProcess(row, { directory, journal }, this.#deps.clock);
  }

  add(session: Session, process: LaunchedProcess): void {
    const own = this.#known.get(session) ?? new Map<string, LaunchedProcess>();
    own.set(process.row.processId, process);
    this.#known.set(session, own);
  }

  /** Records the row of a process, then replaces it. */
  async commit(process: LaunchedProcess, row: ProcessRow): Promise<void> {
    await this.#deps.records.call("putProcess", row);
    process.row = row;
  }

  /** Asks the runtime for the state of a process, and records its end if it has ended. */
  async settle(session: Session, process: LaunchedProcess, call: { readonly signal: AbortSignal }): Promise<void> {
    const { runtime, containers, clock, log } = this.#deps;
    const { row } = process;
    if (row.end !== null || row.started === "no" || process.terminal !== null) return;
    const life = await runtime.inspect(row.container, process.spawned, call);
    const end = endOfProcess(life, { row, session });
    if (end === null || process.row.end !== null) return;
    if (row.container === session.row.container && (end.reason === "oom" || end.reason === "sandbox_lost"))
      containers.suspect(session);
    await this.commit(process, { ...process.row, end: { ...end, atMs: clock.nowMs() } });
    log.info({ sessionId: session.row.id, processId: row.processId, reason: end.reason }, "a process has ended");
  }

  /** Forgets a process with its output; with `forget` the receipt of its launch too, which had no effect. */
  async forget(session: Session, process: LaunchedProcess, receipt: "keep" | "forget"): Promise<void> {
    const { row } = process;
    const { token, processId } = row;
    const forgotten = receipt === "forget" && row.receipt !== null ? { receipt: row.receipt } : {};
    await this.#deps.records.call("forgetProcess", { token, processId, ...forgotten });
    this.#known.get(session)?.delete(processId);
    if (this.#isStored(row)) await this.#deps.journals.of(row).remove();
    await rm(this.#directoryOf(row), { recursive: true, force: true });
  }

  /** Forgets all processes of a session that is destroyed. */
  async forgetSession(session: Session): Promise<void> {
    this.#known.delete(session);
    this.#deps.journals.forget(session.row.token);
    await rm(join(this.#deps.directory, session.row.token), { recursive: true, force: true });
  }

  /** Removes files of sessions and processes that are no longer there. */
  async removeUnowned(sessions: ReadonlyMap<string, Session>): Promise<void> {
    const { directory } = this.#deps;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const token of await readdir(directory)) {
      const session = sessions.get(token);
      const own = session === undefined ? undefined : this.#known.get(session);
      for (const processId of await readdir(join(directory, token)))
        if (own?.has(processId) !== true)
          await rm(this.#directoryOf({ token, processId }), { recursive: true, force: true });
      if (own === undefined) await rm(join(directory, token), { recursive: true, force: true });
    }
  }

  #of(session: Session): readonly LaunchedProcess[] {
    return [...(this.#known.get(session)?.values() ?? [])];
  }

  #directoryOf({ token, processId }: ProcessId): string {
    return join(this.#deps.directory, token, processId);
  }

  /** Whether its journal is in the storage. The output of a terminal is written by the service itself, beside its other files. */
  #isStored(row: ProcessRow): boolean {
    return row.terminal === null && !existsSync(join(this.#directoryOf(row), LOCAL_OUTPUT));
  }
}
