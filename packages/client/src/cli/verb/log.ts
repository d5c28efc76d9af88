import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { type Snapshot, SnapshotKind, TurnOutcome } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { listSnapshots } from "../resolve/list-snapshots.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { enumWord, toIso } from "../sandbox-view.ts";
import { drawTurnTree } from "../turn-tree.ts";

export function registerLog(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("log <id>"))
      .summary("draw the tree of turns")
      .description(
        "Draw a sandbox's snapshots as a tree, parents above children; the files continue from the one marked head.",
      ),
    [
      ["turnbox log web", "the tree"],
      ["turnbox log web --json", "as {snapshots: [...], head}"],
    ],
  ).action(async (id: string, options: ServerOptions) => {
    const { signal, surroundings } = invocation;
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const snapshots = await listSnapshots(sandbox, { signal });
    const head = snapshots.find((snapshot) => snapshot.head)?.snapshotId;
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, head: head ?? null, snapshots: snapshots.map(toSnapshotView) },
      text: snapshots.length === 0 ? "no turns yet\n" : formatLog(snapshots, surroundings.clock.nowMs()),
    });
  });
}

/** The documented shape of a snapshot under `--json`. */
function toSnapshotView(snapshot: Snapshot): object {
  const { snapshotId, turnNumber, turnKey, name, generation, head } = snapshot;
  return {
    snapshotId,
    kind: enumWord(SnapshotKind[snapshot.kind]),
    turnNumber: turnNumber === 0 ? null : turnNumber,
    turnKey,
    name,
    outcome: outcomeOf(snapshot),
    createdAt: toIso(snapshot.createdAt),
    usedBytes: Number(snapshot.usedBytes),
    referencedBytes: Number(snapshot.referencedBytes),
    parentSnapshotId: snapshot.parentSnapshotId === "" ? null : snapshot.parentSnapshotId,
    generation,
    head,
  };
}

/** Only turns have one. */
const outcomeOf = ({ kind, outcome }: Snapshot): string | null =>
  kind === SnapshotKind.TURN
    ? enumWord(TurnOutcome[outcome === TurnOutcome.UNSPECIFIED ? TurnOutcome.SUCCEEDED : outcome])
    : null;

/** The tree with one line per snapshot: number, kind, outcome, age, size, id, name or key, and where the head is. */
export function formatLog(snapshots: readonly Snapshot[], nowMs: number): string {
  const createdAtMs = ({ createdAt }: Snapshot): number => (createdAt === undefined ? 0 : timestampMs(createdAt));
  const rows = snapshots.map((snapshot) => [
    snapshot.turnNumber === 0 ? "" : `#${String(snapshot.turnNumber)}`,
    enumWord(SnapshotKind[snapshot.kind]),
    outcomeOf(snapshot) ?? "",
    formatAge(nowMs - createdAtMs(snapshot)),
    formatSize(Number(snapshot.usedBytes)),
    snapshot.snapshotId,
    [snapshot.name, snapshot.turnKey, snapshot.head ? "<- head" : ""].filter((word) => word !== "").join("  "),
  ]);
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => (cells[column] ?? "").length)));
  const nodes = snapshots.map((snapshot, index) => ({
    id: snapshot.snapshotId,
    parentId: snapshot.parentSnapshotId,
    createdAtMs: createdAtMs(snapshot),
    label: (rows[index] ?? [])
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  }));
  return drawTurnTree(nodes, snapshots.find((snapshot) => snapshot.head)?.snapshotId);
}
