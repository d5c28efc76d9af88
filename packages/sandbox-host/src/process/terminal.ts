import { type Clock, invalidArgument, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { ProcessEnd } from "../record/row.ts";
import type { ExecExit, ExecSpec, Runtime, TerminalExecution, TerminalSize } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { Journal } from "./journal.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** Processes on terminals. They belong to this service: its end is theirs. */
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
  /** What is typed, at an offset: see `ProcessInput`. Here the count lives as long as the terminal. */
  type(process: LaunchedProcess, offset: number, data: Uint8Array): number;
  typedBytes(process: LaunchedProcess): number;
  /** Ends all of them, told as `terminal_closed`. */
  close(): Promise<void>;
}

/** How much output waits to be written before the terminal is held up. */
const HOLD_BYTES = 1024 * 1024;

export function createTerminals(deps: {
  readonly runtime: Runtime;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
}): Terminals {
  const { runtime, processes, clock, log } = deps;
  const opened = new Map<LaunchedProcess, { typedBytes: number; readonly done: Promise<void> }>();
  let isClosing = false;

  const record = async (session: Session, process: LaunchedProcess, exit: ExecExit): Promise<void> => {
    process.terminal = null;
    opened.delete(process);
    const end = { ...endOf(exit, { isClosing, isOld: isOld(session, process) }), atMs: clock.nowMs() };
    await processes.commit(process, { ...process.row, end }).catch((err: unknown) => {
      log.error({ err, sessionId: session.row.id }, "the end of a terminal could not be recorded");
    });
  };

  return {
    open: async (session, { process, spec, size }, { signal }) => {
      const exec = { ...spec, deadlineMs: Number.MAX_SAFE_INTEGER };
      const terminal = await runtime.openTerminal(process.row.container, exec, size, { signal });
      const written = pump(terminal, process.journal);
      process.terminal = terminal;
      const done = terminal.exit.then(async (exit) => {
        await written();
        await record(session, process, exit);
      });
      opened.set(process, { typedBytes: 0, done });
    },
    type: (process, offset, data) => {
      const state = opened.get(process);
      if (state === undefined || process.terminal === null)
        throw new SandboxError("INVALID_STATE", "the process reads no input any more");
      const { typedBytes } = state;
      if (offset > typedBytes) throw invalidArgument("offset", `must be at most ${typedBytes}, what was accepted`);
      const fresh = data.subarray(typedBytes - offset);
      process.terminal.write(fresh);
      state.typedBytes += fresh.length;
      return state.typedBytes;
    },
    typedBytes: (process) => opened.get(process)?.typedBytes ?? 0,
    close: async () => {
      isClosing = true;
      await Promise.all(
        [...opened].map(async ([process, { done }]) => {
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
  exit: ExecExit,
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
    case "killed":
    case "timed_out":
      if (isClosing) return { reason: "terminal_closed", ...none };
      return isOld ? { reason: "stopped", ...none } : { reason: "signaled", exitCode: null, signal: 9 };
  }
}
