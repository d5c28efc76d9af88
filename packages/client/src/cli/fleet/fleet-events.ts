import { FleetEventKind } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { SandboxError } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import { listInstances } from "../resolve/list-instances.ts";
import { type InstanceView, toInstanceView } from "./instance-view.ts";

/** Something that happened to an instance. */
export interface FleetEvent {
  readonly event: "existing" | "changed" | "removed";
  /** After it; of a removed one what it was last. */
  readonly instance: InstanceView;
}

/**
 * What happens to the fleet until the signal ends it: first each instance that exists, then each change. What was missed
 * because events came faster than they were read is made up for by a look at the list.
 */
export async function* readFleetEvents(
  server: TurnboxClients,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<FleetEvent> {
  const known = new Map<string, InstanceView>();
  for await (const { kind, instance } of server.fleet.watchFleet({}, { signal })) {
    if (kind === FleetEventKind.OVERFLOW) {
      const listed = (await listInstances(server, { signal })).map(toInstanceView);
      for (const event of missedEvents(known, listed)) yield note(known, event);
    } else if (instance !== undefined) {
      const event = EVENTS.get(kind);
      if (event !== undefined) yield note(known, { event, instance: toInstanceView(instance) });
    }
  }
  throw new SandboxError("SERVER_UNREACHABLE", `the server at ${server.endpoint.url} has ended the watch`);
}

const EVENTS: ReadonlyMap<FleetEventKind, FleetEvent["event"]> = new Map<FleetEventKind, FleetEvent["event"]>([
  [FleetEventKind.EXISTING, "existing"],
  [FleetEventKind.CHANGED, "changed"],
  [FleetEventKind.REMOVED, "removed"],
]);

function note(known: Map<string, InstanceView>, told: FleetEvent): FleetEvent {
  if (told.event === "removed") known.delete(told.instance.instanceId);
  else known.set(told.instance.instanceId, told.instance);
  return told;
}

/** What must have happened between what is known and what is listed. */
export function missedEvents(
  known: ReadonlyMap<string, InstanceView>,
  listed: readonly InstanceView[],
): readonly FleetEvent[] {
  const present = new Set(listed.map(({ instanceId }) => instanceId));
  const changed = listed.filter((now) => JSON.stringify(known.get(now.instanceId)) !== JSON.stringify(now));
  const gone = [...known.values()].filter(({ instanceId }) => !present.has(instanceId));
  return [
    ...changed.map((instance) => ({ event: "changed" as const, instance })),
    ...gone.map((instance) => ({ event: "removed" as const, instance })),
  ];
}
