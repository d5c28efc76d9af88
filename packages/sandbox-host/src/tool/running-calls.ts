import { type LinkedSignal, linkSignals } from "@turnbox/core";
import type { Session } from "../session/session.ts";

/** The tool calls that run now, by their ids, so that they can be killed. */
export interface RunningCalls {
  /** Runs a call; its signal aborts when it is cancelled, or with one of `ends`. */
  track<Result>(
    session: Session,
    { callId, ends }: { readonly callId: string; readonly ends: readonly AbortSignal[] },
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result>;
  /** Kills the call with everything it started and waits for its end; false if it does not run. */
  cancel(session: Session, callId: string, call: { readonly signal: AbortSignal }): Promise<boolean>;
}

interface Running {
  readonly kill: LinkedSignal;
  readonly ended: Promise<void>;
}

export function createRunningCalls(): RunningCalls {
  /** Several callers may wait for one call. */
  const running = new Map<string, Set<Running>>();

  return {
    track: async (session, { callId, ends }, work) => {
      const key = `${session.row.token}/${callId}`;
      const all = running.get(key) ?? new Set();
      const ended = Promise.withResolvers<undefined>();
      using kill = linkSignals(ends);
      const mine: Running = { kill, ended: ended.promise };
      running.set(key, all.add(mine));
      try {
        return await work(kill.signal);
      } finally {
        all.delete(mine);
        if (all.size === 0) running.delete(key);
        ended.resolve(undefined);
      }
    },
    cancel: async (session, callId, { signal }) => {
      const all = [...(running.get(`${session.row.token}/${callId}`) ?? [])];
      for (const { kill } of all) kill.abort(new DOMException("the call was cancelled", "AbortError"));
      const gone = Promise.withResolvers<never>();
      const onAbort = (): void => {
        gone.reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        await Promise.race([Promise.all(all.map(({ ended }) => ended)), gone.promise]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
      return all.length > 0;
    },
  };
}
