import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "@turnbox/core";
import {
  FleetEventKind,
  type WatchFleetResponse,
  WatchFleetResponseSchema,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { FleetChange, FleetInstance, FleetView } from "../fleet/fleet-view.ts";
import { toWireInstance } from "./convert-fleet.ts";

/** How long a watch is silent before it says that it lives. */
export const KEEPALIVE_MS = 15_000;

const KINDS = {
  changed: FleetEventKind.CHANGED,
  removed: FleetEventKind.REMOVED,
  overflow: FleetEventKind.OVERFLOW,
} as const satisfies Record<FleetChange["kind"], FleetEventKind>;

export interface WatchFleetOptions {
  readonly fleet: FleetView;
  readonly clock: Clock;
}

/**
 * What happens to the fleet: first each instance that exists, then each change, until the signal aborts. Nothing that
 * happens while the first part is read is missed.
 */
export async function* watchFleet(
  { fleet, clock }: WatchFleetOptions,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<WatchFleetResponse> {
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  const tell = (kind: FleetEventKind, instance?: FleetInstance): WatchFleetResponse =>
    create(WatchFleetResponseSchema, {
      kind,
      ...(instance === undefined ? {} : { instance: toWireInstance(instance) }),
      at: timestampFromMs(Math.round(clock.nowMs())),
    });
  const changes = fleet.changes({ signal: over })[Symbol.asyncIterator]();
  // Asked for before the instances are read: a reader of changes may begin to listen with its first question.
  let next = changes.next();
  try {
    for (const instance of fleet.instances()) yield tell(FleetEventKind.EXISTING, instance);
    for (;;) {
      const received = await firstOf(next, clock, over);
      if (over.aborted) return;
      if (received === "silence") {
        yield tell(FleetEventKind.KEEPALIVE);
        continue;
      }
      if (received.done === true) return;
      next = changes.next();
      const change = received.value;
      yield tell(KINDS[change.kind], "instance" in change ? change.instance : undefined);
    }
  } finally {
    ending.abort();
    // Nothing reads what it would have said.
    next.catch(() => undefined);
  }
}

/** What is received within the time, or that nothing was: also if the signal aborts first. */
async function firstOf<T>(next: Promise<T>, clock: Clock, signal: AbortSignal): Promise<T | "silence"> {
  const received = new AbortController();
  const silence = clock.sleep(KEEPALIVE_MS, { signal: AbortSignal.any([signal, received.signal]) }).then(
    () => "silence" as const,
    () => "silence" as const,
  );
  try {
    return await Promise.race([next, silence]);
  } finally {
    received.abort();
  }
}
