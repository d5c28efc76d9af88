import type { Clock } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import type { Containers } from "../session/container.ts";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";

/** From this size on, which no service lets an output reach, the guard of the output may have its sandbox paused. */
const GUARDED_BYTES = 64 * 1024 * 1024;
/** The guard looks at the size first and pauses later, so that a pause may come after the output was made small again. */
const WATCH_MS = 30_000;
const LOOK_EVERY_MS = 500;

/** Lets sandboxes go on that the guard of an output has paused while no service looked after it. */
export interface Thaw {
  /** Tells how large an output was found. */
  note(process: LaunchedProcess, liveBytes: number): void;
  /** Lets the sandbox go on where the guard may have paused it. What others have paused stays so. */
  look(session: Session, process: LaunchedProcess, call: { readonly signal: AbortSignal }): Promise<void>;
}

export function createThaw({
  runtime,
  containers,
  clock,
}: {
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
}): Thaw {
  const watched = new WeakMap<LaunchedProcess, { readonly untilMs: number; nextMs: number }>();
  return {
    note: (process, liveBytes) => {
      if (liveBytes < GUARDED_BYTES) return;
      const nowMs = clock.monotonicMs();
      watched.set(process, { untilMs: nowMs + WATCH_MS, nextMs: nowMs });
    },
    look: async (session, process, call) => {
      const watch = watched.get(process);
      const nowMs = clock.monotonicMs();
      if (watch === undefined || nowMs < watch.nextMs) return;
      watch.nextMs = nowMs + LOOK_EVERY_MS;
      if (nowMs > watch.untilMs) watched.delete(process);
      if (session.row.phase.kind !== "active" || session.gate.isClosed) return;
      using _place = session.gate.enter();
      const { container } = session.row;
      if (container === null || (await runtime.liveness(container, call)) !== "paused") return;
      containers.suspect(session);
      await containers.ensure(session, call);
    },
  };
}
