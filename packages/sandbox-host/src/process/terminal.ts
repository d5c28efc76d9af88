import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { ProcessEnd } from "../record/row.ts";
import type { ExecSpec, Runtime, TerminalExecution, TerminalExit, TerminalSize } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { Journal } from "./journal.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";
import { TerminalInput } from "./terminal-input.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** Processes on terminals. They belong to this service: its end is theirs. How many there may be is bounded. */
export interface Terminals {
  open(
    session: Session,
    at: {
      readonly process: LaunchedProcess;
      readonly spec: Pick<ExecSpec, "argv" | "env" | "cwd">;
      readonly size: TerminalSize;
    },
    call: Call,
  ): Promise<void>;
  /** What is typed, at an offset; answers with all bytes accepted so far: see `TerminalInput`. */
  type(
    process: LaunchedProcess,
    input: { readonly offset: number; readonly data: Uint8Array },
    call: Call,
  ): Promise<number>;
  typedBytes(process: LaunchedProcess): number;
  /** Ends all of them, told as `terminal_closed`. */
  close(): Promise<void>;
}

/** How much output waits to be written before the terminal is held up. */
const HOLD_BYTES = 1024 * 1024;
/** Each terminal has a process of its own, of some 10 MiB beside what they share. */
const MAX_OF_SESSION = 16;
const MAX_OF_HOST = 128;

export function createTerminals(deps: {
  readonly runtime: Runtime;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
}): Terminals {
  const { runtime, processes, clock, log } = deps;
  const opened = new Map<LaunchedProcess, Promise<void>>();
  /** Also of those that have ended: their writers may ask again. */
  const inputs = new WeakMap<LaunchedProcess, TerminalInput>();
  /** Those that are open or being opened, and whose they are. */
  const places = new Map<LaunchedProcess, Session>();
  let isClosing = false;

  const takePlace = (session: Session, process: LaunchedProcess): void => {
    const ofSession = [...places.values()].filter((owner) => owner === session).length;
    const refuse = (whose: string, most: number): SandboxError =>
      new SandboxError("OVERLOADED", `${whose} has ${most} open terminals, the most there may be`, { admitted: "no" });
    if (ofSession >= MAX_OF_SESSION) throw refuse("the session", MAX_OF_SESSION);
    if (places.size >= MAX_OF_HOST) throw refuse("the host", MAX_OF_HOST);
    places.set(process, session);
  };

  const record = async (session: Session, process: LaunchedProcess, exit: TerminalExit): Promise<void> => {
    process.terminal = null;
    inputs.get(process)?.end();
    opened.delete(process);
    places.delete(process);
    const end = { ...endOf(exit, { isClosing, isOld: isOld(session, process) }), atMs: clock.nowMs() };
    await processes.commit(process, { ...process.row, end }).catch((err: unknown) => {
      log.error({ err, sessionId: session.row.id }, "the end of a terminal could not be recorded");
    });
  };

  return {
    open: async (session, { process, spec, size }, { signal }) => {
      takePlace(session, process);
      const exec = { ...spec, deadlineMs: Number.MAX_SAFE_INTEGER };
      const opening = runtime.openTerminal(process.row.container, exec, size, { signal });
      const terminal = await opening.catch((thrown: unknown) => {
        places.delete(process);
        throw thrown;
      });
      const written = pump(terminal, process.journal);
      process.terminal = terminal;
      const done = terminal.exit.then(async (exit) => {
        await written();
        await record(session, process, exit);
      });
      inputs.set(process, new TerminalInput(terminal, clock));
      opened.set(process, done);
    },
    type: async (process, { offset, data }, call) => {
      const input = inputs.get(process);
      if (input === undefined) throw new SandboxError("INVALID_STATE", "the process reads no input any more");
      return await input.write(offset, data, call);
    },
    typedBytes: (process) => inputs.get(process)?.acceptedBytes ?? 0,
    close: async () => {
      isClosing = true;
      await Promise.all(
        [...opened].map(async ([process, done]) => {
          await process.terminal?.kill().catch((err: unknown) => {
            log.warn({ err }, "a terminal could not be ended");
          });
          await done;
        }),
      );
    },
  };
}

/** Appends what the terminal shows to the journal, in order. Answers with what settles when all of it is written. */
function pump(terminal: TerminalExecution, journal: Journal): () => Promise<void> {
  let waitingBytes = 0;
  let last: Promise<unknown> = Promise.resolve();
  terminal.onOutput((data) => {
    waitingBytes += data.length;
    if (waitingBytes > HOLD_BYTES) terminal.hold();
    last = last.then(async () => {
      // Where there is no room, the terminal goes on without a record.
      await journal.append(data).catch(() => undefined);
      waitingBytes -= data.length;
      if (waitingBytes === 0) terminal.release();
    });
  });
  return async () => {
    await last;
  };
}

function isOld(session: Session, { row }: LaunchedProcess): boolean {
  return row.headGeneration !== session.row.headGeneration || session.row.phase.kind === "destroying";
}

function endOf(
  exit: TerminalExit,
  { isClosing, isOld }: { readonly isClosing: boolean; readonly isOld: boolean },
): Omit<ProcessEnd, "atMs"> {
  const none = { exitCode: null, signal: null };
  switch (exit.kind) {
    case "exited":
      return { reason: "exited", exitCode: exit.exitCode, signal: null };
    case "signaled":
      return { reason: "signaled", exitCode: null, signal: exit.signal };
    case "oom":
      return { reason: "oom", ...none };
    case "sandbox_lost":
      return { reason: isOld ? "stopped" : "sandbox_lost", ...none };
    case "terminal_lost":
      return { reason: isOld ? "stopped" : "terminal_closed", ...none };
    case "killed":
    case "timed_out":
      if (isClosing) return { reason: "terminal_closed", ...none };
      return isOld ? { reason: "stopped", ...none } : { reason: "signaled", exitCode: null, signal: 9 };
  }
}
