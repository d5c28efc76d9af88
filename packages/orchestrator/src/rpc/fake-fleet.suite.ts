import { SandboxError } from "@turnbox/core";
import type { DrainRequest, FleetChange, FleetInstance, FleetOperations, FleetView } from "../fleet/fleet-view.ts";

/** A fleet in memory that keeps what it was asked for. */
export interface FakeFleet extends FleetView, FleetOperations {
  waitingCreates: number;
  readonly asked: { readonly drains: DrainRequest[]; readonly images: string[] };
  /** Sends it to all listeners. */
  tell(change: FleetChange): void;
  readonly listeners: number;
}

export function createFakeFleet(initial: readonly FleetInstance[]): FakeFleet {
  const known = new Map(initial.map((one) => [one.instanceId, one]));
  const listeners = new Set<(change: FleetChange) => void>();
  const asked = { drains: [] as DrainRequest[], images: [] as string[] };
  const change = async (instanceId: string, changes: Partial<FleetInstance>): Promise<FleetInstance> => {
    const before = known.get(instanceId);
    if (before === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `no instance ${instanceId}`);
    const after = { ...before, ...changes };
    known.set(instanceId, after);
    return after;
  };
  return {
    fleetId: "f1",
    waitingCreates: 0,
    asked,
    get listeners() {
      return listeners.size;
    },
    instances: () => [...known.values()],
    async *changes({ signal }) {
      const queue: FleetChange[] = [];
      let wake = (): void => undefined;
      const listen = (told: FleetChange): void => {
        queue.push(told);
        wake();
      };
      listeners.add(listen);
      try {
        while (!signal.aborted) {
          const told = queue.shift();
          if (told !== undefined) yield told;
          else {
            await new Promise<void>((resolve) => {
              wake = resolve;
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
          }
        }
      } finally {
        listeners.delete(listen);
      }
    },
    tell: (told) => {
      for (const listen of listeners) listen(told);
    },
    cordon: (instanceId) => change(instanceId, { cordoned: true }),
    uncordon: (instanceId) => change(instanceId, { cordoned: false, drainReason: undefined }),
    drain: (request) => {
      asked.drains.push(request);
      return change(request.instanceId, { cordoned: true, state: "draining", drainReason: "operator" });
    },
    refresh: async ({ image }) => {
      asked.images.push(image);
      return { replacing: ["a"], skipped: ["b"] };
    },
  };
}
