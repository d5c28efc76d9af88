import type { Fleet, FleetEvent } from "@turnbox/client";
import { createBell } from "@turnbox/client/internal";
import { EXIT } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import type { Output } from "../output.ts";
import { printable } from "../printable.ts";
import { onScreen } from "../watch/screen.ts";
import { formatCount, formatInstances, formatState, type InstanceView, toInstanceView } from "./instance-view.ts";

/** Ages go on while nothing happens. */
const PAINT_EVERY_MS = 1000;
/** Many events at once are one picture. */
const PAUSE_MS = 100;

/**
 * Shows the fleet until interrupted, which is how a watch ends: a table that stays true on a terminal, elsewhere a line
 * for each event, or an object for each under `--json`.
 */
export async function showFleet(fleet: Fleet, output: Output, invocation: Invocation): Promise<void> {
  try {
    if (output.format === "text" && output.to === "terminal") await showTable(fleet, invocation);
    else await showEvents(fleet, output, invocation);
  } catch (thrown) {
    if (!invocation.signal.aborted) throw thrown;
    invocation.exitWith(EXIT.interrupted);
  }
}

async function showEvents(fleet: Fleet, output: Output, invocation: Invocation): Promise<void> {
  const { clock } = invocation.surroundings;
  for await (const { kind, instance } of fleet.watch({ signal: invocation.signal })) {
    const at = new Date(clock.nowMs()).toISOString();
    const shown = { event: kind, instance: toInstanceView(instance) };
    await output.result({ json: { ...shown, at }, text: formatEvent(shown, at) });
  }
}

interface ShownEvent {
  readonly event: FleetEvent["kind"];
  readonly instance: InstanceView;
}

function formatEvent({ event, instance }: ShownEvent, at: string): string {
  const words = [
    instance.instanceId,
    formatState(instance),
    instance.health,
    `${formatCount(instance)} ${instance.sessionCount === 1 ? "sandbox" : "sandboxes"}`,
  ];
  const remark = instance.message === "" ? "" : `  ${printable(instance.message)}`;
  return `${at}  ${event.padEnd("existing".length)}  ${words.join("  ")}${remark}\n`;
}

async function showTable(fleet: Fleet, invocation: Invocation): Promise<void> {
  const { stdout, clock } = invocation.surroundings;
  const known = new Map<string, InstanceView>();
  const bell = createBell();
  const ending = new AbortController();
  const signal = AbortSignal.any([invocation.signal, ending.signal]);
  const read = async (): Promise<void> => {
    for await (const { kind, instance } of fleet.watch({ signal })) {
      if (kind === "removed") known.delete(instance.id);
      else known.set(instance.id, toInstanceView(instance));
      bell.ring();
    }
  };
  const draw = async (paint: (text: string) => Promise<void>): Promise<void> => {
    for (;;) {
      bell.reset();
      const instances = [...known.values()].sort((one, other) => (one.instanceId < other.instanceId ? -1 : 1));
      await paint(`${formatInstances(instances, clock.nowMs())}${summary(instances)}`);
      await clock.sleep(PAUSE_MS, { signal });
      await Promise.race([bell.rung(), clock.sleep(PAINT_EVERY_MS - PAUSE_MS, { signal })]);
    }
  };
  const onResize = (): void => {
    bell.ring();
  };
  stdout.on?.("resize", onResize);
  try {
    await onScreen(stdout, async (paint) => {
      const drawing = draw(paint);
      try {
        await Promise.race([read(), drawing]);
      } finally {
        ending.abort();
        // The last picture is on the screen before the screen is left.
        await drawing.catch(() => undefined);
      }
    });
  } finally {
    stdout.off?.("resize", onResize);
  }
}

function summary(instances: readonly InstanceView[]): string {
  const sandboxes = instances.reduce((sum, { sessionCount }) => sum + sessionCount, 0);
  const counted = (count: number, one: string, many: string): string => `${String(count)} ${count === 1 ? one : many}`;
  const machines = counted(instances.length, "instance", "instances");
  return `\n${machines}, ${counted(sandboxes, "sandbox", "sandboxes")}\n`;
}
