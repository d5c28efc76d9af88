import type { Clock } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";

/**
 * Sends a signal to a launched process; SIGKILL ends everything that the process started too. One that has ended is left
 * alone. A process on a terminal has no other end than the whole terminal's, except for what a keyboard can send;
 * a terminal that is too full for the key has its foreground signalled.
 */
export type KillProcess = (
  session: Session,
  process: LaunchedProcess,
  request: { readonly signal: number },
  call: { readonly signal: AbortSignal },
) => Promise<void>;

const SIGINT = 2;
const SIGQUIT = 3;
const SIGKILL = 9;
const SIGTSTP = 20;
/** How a keyboard sends them. */
const KEYS: ReadonlyMap<number, number> = new Map([
  [SIGINT, 0x03],
  [SIGQUIT, 0x1c],
  [SIGTSTP, 0x1a],
]);
/** How long a call waits for room in a full terminal. */
const KEY_MS = 200;
/** How long a call waits for the end of a process that cannot refuse it. */
const DEATH_MS = 30_000;
const POLL_MS = 10;

export function createKillProcess(deps: {
  readonly runtime: Runtime;
  readonly processes: Processes;
  readonly clock: Clock;
}): KillProcess {
  const { runtime, processes, clock } = deps;
  return async (session, process, { signal }, call) => {
    await processes.settle(session, process, call);
    if (process.row.end !== null) return;
    if (process.terminal === null) {
      const scope = signal === SIGKILL ? "tree" : "process";
      await runtime.signal(process.row.container, process.spawned, { signal, scope }, call);
    } else {
      const key = KEYS.get(signal);
      if (key === undefined) await process.terminal.kill();
      else if ((await process.terminal.write(Uint8Array.of(key), KEY_MS)) === 0) process.terminal.signal(signal);
    }
    if (signal !== SIGKILL) return;
    const untilMs = clock.monotonicMs() + DEATH_MS;
    const isAlive = (): boolean => process.row.end === null;
    while (isAlive() && clock.monotonicMs() < untilMs) {
      await processes.settle(session, process, call);
      await clock.sleep(POLL_MS, call);
    }
  };
}
