import { constants } from "node:os";
import type { CommandExit } from "@turnbox/core";
import { type GvisorContext, liveState } from "../context.ts";
import { callSentry, SentryGone } from "../container/sentry-call.ts";

/** A process that runs inside. */
export interface SentryProcess {
  readonly id: string;
  readonly socketPath: string;
  readonly pid: number;
}

/** The exit code of `runsc exec` when its sandbox dies, which is used here too. */
const LOST: CommandExit = { kind: "exited", exitCode: 128 };
const RETRY_MS = 50;

/** Waits for a process inside and ends it, as the host-side command of a `runsc exec` would. */
export function followProcess(
  context: GvisorContext,
  process: SentryProcess,
): { readonly ended: Promise<CommandExit>; kill(this: void): void } {
  const gaveUp = new AbortController();
  const { promise, resolve } = Promise.withResolvers<CommandExit>();
  void waitFor(context, process, gaveUp.signal).then(resolve, () => {
    resolve({ kind: "signaled", signal: "SIGKILL", deadline: "kept" });
  });
  return {
    ended: promise,
    kill: () => {
      if (gaveUp.signal.aborted) return;
      gaveUp.abort();
      const { id, socketPath, pid } = process;
      const arg = { CID: id, Signo: constants.signals.SIGKILL, PID: pid, Mode: 0 };
      callSentry({ socketPath, method: "Signal", arg }, AbortSignal.timeout(KILL_MS)).catch(() => undefined);
    },
  };
}

const KILL_MS = 10_000;

/** The sentry keeps how a process ended until it is asked; a connection that breaks while it lives is tried again. */
async function waitFor(
  context: GvisorContext,
  { id, socketPath, pid }: SentryProcess,
  signal: AbortSignal,
): Promise<CommandExit> {
  for (;;) {
    try {
      return toExit(Number(await callSentry({ socketPath, method: "WaitPID", arg: { PID: pid, CID: id } }, signal)));
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof SentryGone) || (await liveState(context, id)) === undefined) return LOST;
      await context.clock.sleep(RETRY_MS, { signal });
    }
  }
}

/** As `runsc exec` reports it: a signal is a code above 128. */
function toExit(status: number): CommandExit {
  const signal = status & 0x7f;
  return { kind: "exited", exitCode: signal === 0 ? (status >> 8) & 0xff : 128 + signal };
}
