import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import { timingAfterResume } from "../session/timing.ts";

export interface PauseRequest {
  readonly expectedGeneration: number | undefined;
  /** What happens with tool calls that are still running when the time is over. */
  readonly late: "refuse" | "kill";
  /** How long to wait for running tool calls; 0 does not wait. */
  readonly drainTimeoutMs: number;
  readonly cause: "request" | "timeout";
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Closes the session to tools at once, waits for the running ones, then freezes its processes. If tools are left at
 * the end of the time, they are killed, or the call fails with `TOOLS_IN_FLIGHT` and the session stays as it was.
 * Idempotent.
 */
export type PauseSession = (session: Session, request: PauseRequest, call: Call) => Promise<void>;

/** Thaws a paused session. Idempotent. */
export type ResumeSession = (
  session: Session,
  request: { readonly expectedGeneration: number | undefined },
  call: Call,
) => Promise<void>;

interface Deps {
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly intents: Intents;
  readonly clock: Clock;
  readonly log: Logger;
  readonly crashPoint: CrashPointHook;
}

/** How long killed tools may take to end. */
const KILL_TIMEOUT_MS = 30_000;
/** Undoing has its own time: the caller's signal may be what made it necessary. */
const THAW_TIMEOUT_MS = 30_000;

export function createPauseSession({ runtime, containers, intents, clock, log, crashPoint }: Deps): PauseSession {
  return async (session, request, caller) => {
    const call = within(session, caller);
    await inOrder(session, "PauseSession", async () => {
      assertGeneration(session, request.expectedGeneration);
      if (session.row.phase.kind === "paused") return;
      assertActive(session.row.phase, "PauseSession");
      await intents.settleLeftover(session);
      using _closed = session.gate.close("SESSION_PAUSED");
      await crashPoint("pause.closed");
      await drain(session, request, call);
      await containers.settled(session);
      const { container } = session.row;
      try {
        if (container !== null && (await runtime.liveness(container, call)) === "running") {
          await runtime.pause(container, call);
        }
        await crashPoint("pause.frozen");
        await session.commit((row) => ({
          ...row,
          phase: { kind: "paused", sinceMs: clock.nowMs(), cause: request.cause },
        }));
        await crashPoint("pause.committed");
      } catch (thrown) {
        await thaw(container).catch((err: unknown) => {
          // The next call finds it frozen and thaws it.
          containers.suspect(session);
          log.error({ err, sessionId: session.row.id }, "session not paused but still frozen");
        });
        throw thrown;
      }
    });
  };

  async function thaw(container: string | null): Promise<void> {
    const call = { signal: AbortSignal.timeout(THAW_TIMEOUT_MS) };
    if (container !== null && (await runtime.liveness(container, call)) === "paused")
      await runtime.resume(container, call);
  }
}

async function drain(session: Session, { late, drainTimeoutMs }: PauseRequest, call: Call): Promise<void> {
  try {
    await session.gate.drained({ timeoutMs: drainTimeoutMs, signal: call.signal });
  } catch (thrown) {
    if (late === "refuse" || call.signal.aborted) throw thrown;
    session.killTools();
    await session.gate.drained({ timeoutMs: KILL_TIMEOUT_MS, signal: call.signal });
  }
}

export function createResumeSession({
  containers,
  clock,
  crashPoint,
}: Pick<Deps, "containers" | "clock" | "crashPoint">): ResumeSession {
  return async (session, request, caller) => {
    const call = within(session, caller);
    await inOrder(session, "ResumeSession", async () => {
      assertGeneration(session, request.expectedGeneration);
      if (session.row.phase.kind === "active") return;
      if (session.row.phase.kind !== "paused") assertActive(session.row.phase, "ResumeSession");
      await session.commit((row) => ({
        ...row,
        timing: timingAfterResume(row, clock.nowMs()),
        phase: { kind: "active" },
      }));
      await crashPoint("resume.committed");
      containers.suspect(session);
      // A container that is there is thawed now, so that its processes go on; none is booted for it.
      if (session.row.container !== null) await containers.ensure(session, call);
      await crashPoint("resume.thawed");
    });
  };
}
