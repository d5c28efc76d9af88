import { hasReason, SandboxError, type Snapshot } from "@turnbox/client";
import { z } from "zod";
import { defineTool, REFERENCE, toTarget } from "./own-tool.ts";

const LISTED_TURNS = 50;
const CHANGES = { readOnlyHint: false, idempotentHint: false, openWorldHint: false } as const;

export const TURN = defineTool({
  name: "turn",
  title: "Seal a turn",
  description:
    "Seals the present files as a numbered turn, a snapshot that `rollback`, `fork` and `diff` can refer to. Call it when a step " +
    "is done, and before anything risky. It is quick, and nothing that runs is stopped.",
  hints: { ...CHANGES, destructiveHint: false },
  input: z.strictObject({
    note: z
      .string()
      .max(80)
      .optional()
      .describe("What was done in this turn, in a few words; shown in the list of turns."),
    outcome: z.enum(["succeeded", "failed"]).optional().describe("How the turn went; succeeded unless given."),
  }),
  run: async ({ note, outcome }, { workspace, toolCallId, signal }) => {
    const sandbox = await workspace.current({ signal });
    const turn = await sandbox.turn({
      key: turnKeyOf(toolCallId, note),
      signal,
      ...(outcome === undefined ? {} : { outcome }),
    });
    const { number, snapshotId, unchanged, generation } = turn;
    const text = unchanged
      ? `Nothing has changed since turn ${String(number)} (${snapshotId}), which stands for the present files.`
      : `Turn ${String(number)} is sealed (${snapshotId}).`;
    return { text, facts: { turn: number, snapshotId, unchanged, generation } };
  },
});

/** Keys make repeats one turn. A note alone would make two turns with the same note one. */
export const turnKeyOf = (toolCallId: string, note?: string): string =>
  note === undefined ? toolCallId : `${note} [${toolCallId}]`;

const noteOf = (turnKey: string | undefined): string | undefined =>
  turnKey === undefined ? undefined : turnKey.replace(/ ?\[?mcp-[0-9a-f]{32}\]?$/, "") || undefined;

export const TURNS = defineTool({
  name: "turns",
  title: "List turns",
  description: `Lists the sealed turns, the latest ${String(LISTED_TURNS)} of them, oldest first, and says from which one the present files go on.`,
  hints: { readOnlyHint: true, openWorldHint: false },
  input: z.strictObject({}),
  run: async (_, { workspace, signal }) => {
    const sandbox = await workspace.current({ signal });
    const turns = (await sandbox.turns({ signal })).slice(-LISTED_TURNS).map(toTurnFacts);
    const lines = turns.map(
      ({ turn, snapshotId, createdAt, outcome, note, isHead }) =>
        `${String(turn)}  ${createdAt}  ${snapshotId}${outcome === "failed" ? "  failed" : ""}${note === undefined ? "" : `  ${note}`}${isHead ? "  <- the present files go on from here" : ""}`,
    );
    return { text: lines.join("\n") || "No turn is sealed yet.", facts: { turns } };
  },
});

export function toTurnFacts({ turnNumber, id, createdAt, outcome, turnKey, head }: Snapshot) {
  return {
    turn: turnNumber ?? 0,
    snapshotId: id,
    createdAt: createdAt.toISOString(),
    outcome: outcome ?? "succeeded",
    note: noteOf(turnKey),
    isHead: head,
  };
}

export const ROLLBACK = defineTool({
  name: "rollback",
  title: "Roll back to a turn",
  description:
    "Brings all files back to how they were in a turn. Running processes are stopped. What is there now is kept as a snapshot of its " +
    "own, and `undo` brings it back. Wait for your other calls first.",
  hints: { ...CHANGES, destructiveHint: true },
  input: z.strictObject({ to: REFERENCE.describe("The turn's number, or the id of a snapshot.") }),
  run: async ({ to }, { workspace, toolCallId, signal }) => {
    const sandbox = await workspace.current({ signal });
    const target = toTarget(to);
    const { generation, undoSnapshotId } = await sandbox.rollback(target, { idempotencyKey: toolCallId, signal });
    const where = typeof target === "number" ? `in turn ${String(target)}` : `in ${target}`;
    return {
      text: `The files are as they were ${where}. Processes were stopped. \`undo\` takes this back (${undoSnapshotId}).`,
      facts: { to: target, undoSnapshotId, generation },
    };
  },
});

export const UNDO = defineTool({
  name: "undo",
  title: "Undo the last rollback",
  description:
    "Takes the last rollback back: the files are again as they were before it. Running processes are stopped.",
  hints: { ...CHANGES, destructiveHint: true },
  input: z.strictObject({}),
  run: async (_, { workspace, toolCallId, signal }) => {
    const sandbox = await workspace.current({ signal });
    try {
      const { generation, undoSnapshotId } = await sandbox.undo({ idempotencyKey: toolCallId, signal });
      return {
        text: `The last rollback is taken back. Another \`undo\` would bring it about again (${undoSnapshotId}).`,
        facts: { undoSnapshotId, generation },
      };
    } catch (thrown) {
      // Sent again after it was done, the last rollback is this undo itself, and another one would be undone.
      if (!hasReason(thrown, "IDEMPOTENCY_CONFLICT")) throw thrown;
      return { text: "This undo has been done already.", facts: { repeated: true } };
    }
  },
});

/** Where the present files go on from. */
export function headOf(snapshots: readonly Snapshot[]): Snapshot {
  const head = snapshots.find((snapshot) => snapshot.head);
  if (head !== undefined) return head;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", "no turn is sealed yet, so there is nothing to compare with", {
    metadata: { remedy: "Call `turn` now; later calls can compare with it." },
  });
}
