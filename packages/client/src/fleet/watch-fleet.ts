import { SandboxError } from "@turnbox/core";
import { FleetEventKind } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { ServerLink } from "../sandbox/link/server-link.ts";
import { pull } from "../sandbox/stream/pull.ts";
import type { Fleet, FleetEvent, Instance } from "./fleet-types.ts";
import { listInstances } from "./list-instances.ts";
import { toInstance } from "./to-instance.ts";

const KINDS: ReadonlyMap<FleetEventKind, FleetEvent["kind"]> = new Map<FleetEventKind, FleetEvent["kind"]>([
  [FleetEventKind.EXISTING, "existing"],
  [FleetEventKind.CHANGED, "changed"],
  [FleetEventKind.REMOVED, "removed"],
]);

export function createFleetWatch(server: ServerLink): Fleet["watch"] {
  return ({ signal: outer } = {}) =>
    pull<FleetEvent>(async (emit, own) => {
      const known = new Map<string, Instance>();
      let connection: "first" | "later" = "first";
      const tell = async (event: FleetEvent): Promise<void> => {
        if (event.kind === "removed") known.delete(event.instance.id);
        else known.set(event.instance.id, event.instance);
        await emit(event);
      };
      const catchUp = async (listed: readonly Instance[]): Promise<void> => {
        for (const event of missedEvents(known, listed)) await tell(event);
      };
      await server.call(
        async (to, { signal, progress }) => {
          const isLater = connection === "later";
          const events = to.fleet.watchFleet({}, { signal });
          if (isLater) await catchUp(await listInstances(to, { signal }));
          for await (const { kind: wire, instance } of events) {
            connection = "later";
            const kind = KINDS.get(wire);
            // Instances that exist are sent at once by a server that ends each watch too: they are no sign of life.
            if (kind !== "existing") progress();
            if (wire === FleetEventKind.OVERFLOW) await catchUp(await listInstances(to, { signal }));
            else if (kind !== undefined && !(isLater && kind === "existing"))
              await tell({ kind, instance: toInstance(instance) });
          }
          signal.throwIfAborted();
          throw new SandboxError("SERVER_UNREACHABLE", `the server at ${to.endpoint.url} has ended the watch`);
        },
        { signal: own.signal, timeoutMs: DEFAULT_TIMEOUT_MS.stream },
      );
    }, outer);
}

/** What must have happened between what is known and what is listed. */
export function missedEvents(known: ReadonlyMap<string, Instance>, listed: readonly Instance[]): readonly FleetEvent[] {
  const present = new Set(listed.map(({ id }) => id));
  const changed = listed.filter((now) => JSON.stringify(known.get(now.id)) !== JSON.stringify(now));
  const gone = [...known.values()].filter(({ id }) => !present.has(id));
  return [
    ...changed.map((instance): FleetEvent => ({ kind: "changed", instance })),
    ...gone.map((instance): FleetEvent => ({ kind: "removed", instance })),
  ];
}
