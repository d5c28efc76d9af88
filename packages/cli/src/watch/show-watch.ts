import type { Turnbox } from "@turnbox/client";
import { EXIT } from "../exit-code.ts";
import { formatSandboxes } from "../format/sandbox-table.ts";
import type { Invocation } from "../invocation.ts";
import type { Output } from "../output.ts";
import { type SandboxView, toSandboxView } from "../sandbox-view.ts";
import { afterLook, compareLooks, type Look, type SandboxEvent } from "./sandbox-events.ts";
import { onScreen } from "./screen.ts";

export interface Watch {
  readonly turnbox: Turnbox;
  readonly labels: Readonly<Record<string, string>>;
  readonly output: Output;
}

/**
 * Shows sandboxes until interrupted, which is how a watch ends: a table that stays true on a terminal, elsewhere a line
 * for each event, or an object for each under `--json`.
 */
export async function showWatch(watch: Watch, invocation: Invocation): Promise<void> {
  const { output } = watch;
  try {
    if (output.format === "text" && output.to === "terminal") await showTable(watch, invocation);
    else await showEvents(watch, invocation);
  } catch (thrown) {
    if (!invocation.signal.aborted) throw thrown;
    invocation.exitWith(EXIT.interrupted);
  }
}

async function* looks(
  { turnbox, labels }: Pick<Watch, "turnbox" | "labels">,
  { signal }: Invocation,
): AsyncIterable<Look> {
  for await (const { sandboxes, unreachableInstances } of turnbox.watch({ labels, signal }))
    yield { sandboxes: sandboxes.map(toSandboxView), unreachableInstances };
}

async function showEvents({ output, ...watch }: Watch, invocation: Invocation): Promise<void> {
  const { clock } = invocation.surroundings;
  let known: ReadonlyMap<string, SandboxView> | undefined;
  let silent = "";
  for await (const look of looks(watch, invocation)) {
    const at = new Date(clock.nowMs()).toISOString();
    const events: readonly SandboxEvent[] =
      known === undefined
        ? look.sandboxes.map((sandbox) => ({ event: "existing", sandbox }))
        : compareLooks(known, look);
    for (const event of events) await output.result({ json: { ...event, at }, text: formatEvent(event, at) });
    known = afterLook(known ?? new Map(), look);
    const silentNow = look.unreachableInstances.join(", ");
    if (silentNow !== silent) await output.note(silentNow === "" ? "all hosts answer again" : silence(look));
    silent = silentNow;
  }
}

function formatEvent({ event, sandbox }: SandboxEvent, at: string): string {
  const { sandboxId, name, state, generation, turnCount } = sandbox;
  const words = [sandboxId, name === "" ? "-" : name, state, `generation ${String(generation)}`];
  return `${at}  ${event.padEnd("destroyed".length)}  ${words.join("  ")}  ${String(turnCount)} turns\n`;
}

const silence = ({ unreachableInstances }: Look): string =>
  `not answering, their sandboxes may be missing: ${unreachableInstances.join(", ")}`;

async function showTable(watch: Watch, invocation: Invocation): Promise<void> {
  const { stdout, clock } = invocation.surroundings;
  let known: ReadonlyMap<string, SandboxView> = new Map();
  await onScreen(stdout, async (paint) => {
    for await (const look of looks(watch, invocation)) {
      known = afterLook(known, look);
      const table = formatSandboxes([...known.values()], clock.nowMs());
      const remark = look.unreachableInstances.length === 0 ? "" : `${silence(look)}\n`;
      await paint(`${table}${remark}`);
    }
  });
}
