import type { SandboxView } from "../sandbox-view.ts";

export type SandboxEventKind = "existing" | "created" | "changed" | "sealed" | "destroyed";

/** Something that happened to a sandbox, as two looks at the list show it. */
export interface SandboxEvent {
  readonly event: SandboxEventKind;
  /** After it; of a destroyed one what it was last. */
  readonly sandbox: SandboxView;
}

/** A look at the list. */
export interface Look {
  readonly sandboxes: readonly SandboxView[];
  /** Instances whose sandboxes may be missing. */
  readonly unreachableInstances: readonly string[];
}

/**
 * What happened between two looks, at most one event for each sandbox. Silence is not death: those of a host that does
 * not answer stay as they were.
 */
export function compareLooks(before: ReadonlyMap<string, SandboxView>, look: Look): readonly SandboxEvent[] {
  const events: SandboxEvent[] = [];
  for (const sandbox of look.sandboxes) {
    const event = eventOf(before.get(sandbox.sandboxId), sandbox);
    if (event !== undefined) events.push({ event, sandbox });
  }
  const present = new Set(look.sandboxes.map(({ sandboxId }) => sandboxId));
  for (const [sandboxId, sandbox] of before) {
    if (!present.has(sandboxId) && !isSilent(sandboxId, look)) events.push({ event: "destroyed", sandbox });
  }
  return events;
}

/** What is known after a look, in the order of the list, with those of silent hosts at the end. */
export function afterLook(before: ReadonlyMap<string, SandboxView>, look: Look): Map<string, SandboxView> {
  const after = new Map(look.sandboxes.map((sandbox) => [sandbox.sandboxId, sandbox]));
  for (const [sandboxId, sandbox] of before) {
    if (!after.has(sandboxId) && isSilent(sandboxId, look)) after.set(sandboxId, sandbox);
  }
  return after;
}

function eventOf(before: SandboxView | undefined, now: SandboxView): SandboxEventKind | undefined {
  if (before === undefined) return "created";
  if (CHANGES.some((field) => before[field] !== now[field])) return "changed";
  return now.turnCount > before.turnCount || now.snapshotCount > before.snapshotCount ? "sealed" : undefined;
}

const CHANGES = ["state", "generation", "expiresAt"] as const satisfies readonly (keyof SandboxView)[];

const isSilent = (sandboxId: string, { unreachableInstances }: Look): boolean =>
  unreachableInstances.includes(sandboxId.split(":")[1] ?? "");
