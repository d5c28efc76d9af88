import type { Containers } from "../container/container.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";

/** Lets sandboxes go on that the runtime has paused because of an output that no service looked after. */
export interface Thaw {
  /** Looks once at the sandbox of each process that an earlier service has left. What others have paused stays so. */
  look(session: Session, process: LaunchedProcess, call: { readonly signal: AbortSignal }): Promise<void>;
}

export function createThaw(
  { runtime, containers }: { readonly runtime: Runtime; readonly containers: Containers },
  left: Iterable<LaunchedProcess>,
): Thaw {
  const due = new WeakSet(left);
  return {
    look: async (session, process, call) => {
      // What holds the gate may itself pause or replace the sandbox.
      if (!due.has(process) || session.gate.isClosed) return;
      const { container, phase } = session.row;
      if (phase.kind === "active" && container !== null) {
        using _place = session.gate.enter();
        if ((await runtime.liveness(container, call)) === "paused") {
          containers.suspect(session);
          await containers.ensure(session, call);
        }
      }
      due.delete(process);
    },
  };
}
