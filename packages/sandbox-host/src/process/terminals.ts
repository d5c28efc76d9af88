import { type Clock, type Log, SandboxError } from "@turnbox/core";
import type { ExecSpec, Runtime, TerminalExecution, TerminalExit, TerminalSize } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { Journal } from "./journal.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import { endOfTerminal } from "./process-end.ts";
import type { Processes } from "./processes.ts";
import { TerminalInput } from "./terminal-input.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** What a terminal is opened for. */
interface Opening {
  readonly process: LaunchedProcess;
  readonly spec: Pick<ExecSpec, "argv" | "env" | "cwd">;
  readonly size: TerminalSize;
}

/** How much output waits to be written before the terminal is held up. */
const HOLD_BYTES = 1024 * 1024;
/** Each terminal has a process of its own, of some 10 MiB beside what they share. */
const MAX_OF_SESSION = 16;
const MAX_OF_HOST = 128;

/** Processes on terminals. They end with this service. Their number is bounded, for each session and for all. */
export class Terminals {
  readonly #runtime: Runtime;
  readonly #processes: Processes;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Each settles when the end of its process is recorded. */
  readonly #opened = new Map<LaunchedProcess, Promise<void>>();
  /** Also of processes that have ended: their writers may ask again. */
  readonly #inputs = new WeakMap<LaunchedProcess, TerminalInput>();
  /** The session of each terminal that is open or being opened. */
  readonly #sessions = new Map<LaunchedProcess, Session>();
  #isClosing = false;

  constructor(deps: {
    readonly runtime: Runtime;
    readonly processes: Processes;
    readonly clock: Clock;
    readonly log: Log;
  }) {
    this.#runtime = deps.runtime;
    this.#processes = deps.processes;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  async open(session: Session, { process, spec, size }: Opening, { signal }: Call): Promise<void> {
    this.#reserve(session, process);
    const exec = { ...spec, deadlineMs: Number.MAX_SAFE_INTEGER };
    const opening = this.#runtime.openTerminal(process.row.container, exec, size, { signal });
    const terminal = await opening.catch((thrown: unknown) => {
      this.#sessions.delete(process);
      throw thrown;
    });
    const written = pump(terminal, process.journal);
    process.terminal = terminal;
    const done = terminal.exit.then(async (exit) => {
      await written();
      await this.#record(session, process, exit);
    });
    this.#inputs.set(process, new TerminalInput(terminal, this.#clock));
    this.#opened.set(process, done);
  }

  /** Types data at an offset; returns all bytes accepted so far: see `TerminalInput`. */
  async type(
    process: LaunchedProcess,
    { offset, data }: { readonly offset: number; readonly data: Uint8Array },
    call: Call,
  ): Promise<number> {
    const input = this.#inputs.get(process);
    if (input === undefined) throw new SandboxError("INVALID_STATE", "the process reads no input any more");
    return await input.write(offset, data, call);
  }

  typedBytes(process: LaunchedProcess): number {
    return this.#inputs.get(process)?.acceptedBytes ?? 0;
  }

  /** Ends all of them; the reason of their ends is `terminal_closed`. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(
      [...this.#opened].map(async ([process, done]) => {
        await process.terminal?.kill().catch((err: unknown) => {
          this.#log.warn({ err }, "a terminal could not be ended");
        });
        await done;
      }),
    );
  }

  #reserve(session: Session, process: LaunchedProcess): void {
    const ofSession = [...this.#sessions.values()].filter((owner) => owner === session).length;
    const refuse = (whose: string, most: number): SandboxError =>
      new SandboxError("OVERLOADED", `${whose} has ${most} open terminals, the most there may be`, { admitted: "no" });
    if (ofSession >= MAX_OF_SESSION) throw refuse("the session", MAX_OF_SESSION);
    if (this.#sessions.size >= MAX_OF_HOST) throw refuse("the host", MAX_OF_HOST);
    this.#sessions.set(process, session);
  }

  async #record(session: Session, process: LaunchedProcess, exit: TerminalExit): Promise<void> {
    process.terminal = null;
    this.#inputs.get(process)?.end();
    this.#opened.delete(process);
    this.#sessions.delete(process);
    const how = endOfTerminal(exit, { isClosing: this.#isClosing, isStopped: isStopped(session, process) });
    const end = { ...how, atMs: this.#clock.nowMs() };
    await this.#processes.commit(process, { ...process.row, end }).catch((err: unknown) => {
      this.#log.error({ err, sessionId: session.row.id }, "the end of a terminal could not be recorded");
    });
  }
}

/** Appends the output of the terminal to the journal, in order. The function that it returns waits until all is written. */
function pump(terminal: TerminalExecution, journal: Journal): () => Promise<void> {
  let waitingBytes = 0;
  let last: Promise<unknown> = Promise.resolve();
  terminal.onOutput((data) => {
    waitingBytes += data.length;
    if (waitingBytes > HOLD_BYTES) terminal.hold();
    last = last.then(async () => {
      // If there is no room, the terminal goes on without a record.
      await journal.append(data).catch(() => undefined);
      waitingBytes -= data.length;
      if (waitingBytes === 0) terminal.release();
    });
  });
  return async () => {
    await last;
  };
}

function isStopped(session: Session, { row }: LaunchedProcess): boolean {
  return row.headGeneration !== session.row.headGeneration || session.row.phase.kind === "destroying";
}
