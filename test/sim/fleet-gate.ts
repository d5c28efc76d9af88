import { SandboxError } from "@turnbox/core";
import type { ControlCall, SandboxControl } from "../../packages/orchestrator/src/control/sandbox-control.ts";
import type { FleetOperations } from "../../packages/orchestrator/src/fleet/fleet-view.ts";
import type { SimProcess } from "./sim-process.ts";
import { unreachable } from "./wire.ts";
import type { SimWorld } from "./world.ts";

/** An orchestrator that serves. */
export interface Serving {
  readonly process: SimProcess;
  readonly control: SandboxControl;
  readonly operations: FleetOperations;
}

export const TENANT = "acme";

/** A call from outside to an orchestrator: it waits while that is paused, and breaks when it dies. */
export function callOrchestrator<T>(
  world: SimWorld,
  serving: Serving,
  request: {
    readonly timeoutMs: number;
    readonly work: (serving: Serving, call: ControlCall) => Promise<T>;
  },
): Promise<T> {
  const { process } = serving;
  return new Promise<T>((resolve, reject) => {
    const caller = new AbortController();
    const end = (settle: () => void): void => {
      forget();
      timeout.cancel();
      settle();
    };
    const forget = process.onDeath(() => {
      end(() => {
        reject(unreachable("unknown"));
      });
    });
    const timeout = world.timeline.after(request.timeoutMs, () => {
      const late = new SandboxError("DEADLINE_EXCEEDED", "the client waited long enough");
      process.enter(() => {
        caller.abort(late);
      });
      end(() => {
        reject(late);
      });
    });
    process.enter(() => {
      request.work(serving, { signal: caller.signal, tenant: TENANT, timeoutMs: request.timeoutMs }).then(
        (result) => {
          end(() => {
            resolve(result);
          });
        },
        (error: unknown) => {
          end(() => {
            reject(SandboxError.from(error));
          });
        },
      );
    });
  });
}
