import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { type Snapshot, SnapshotKind, TurnOutcome } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { Charset } from "../../config.ts";
import { displayWidth, padToWidth } from "../format/display-width.ts";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { enumWord } from "../sandbox-view.ts";
import { outcomeOf, toSnapshotView } from "../snapshot-view.ts";
import { PLAIN, type Style } from "../style.ts";
import { drawTurnTree, TREE_SHAPES } from "../turn-tree.ts";

/** What stands behind the snapshot that the files continue from. */
const HEAD: Readonly<Record<Charset, string>> = { ascii: "<- head", "utf-8": "← head" };

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
    const output = invocation.output(options);
    const nowMs = surroundings.clock.nowMs();
    await output.result({
      json: { sandboxId: sandbox.sandboxId, head: head ?? null, snapshots: snapshots.map(toSnapshotView) },
      text:
        snapshots.length === 0
          ? "no turns yet\n"
          : formatLog(snapshots, { nowMs, charset: output.charset, style: output }),
    });
  });
}

/** The tree with one line per snapshot: number, kind, outcome, age, size, id, name or key, and where the head is. */
export function formatLog(
  snapshots: readonly Snapshot[],
  { nowMs, charset, style = PLAIN }: { readonly nowMs: number; readonly charset: Charset; readonly style?: Style },
): string {
  const createdAtMs = ({ createdAt }: Snapshot): number => (createdAt === undefined ? 0 : timestampMs(createdAt));
  const rows = snapshots.map((snapshot) => [
    snapshot.turnNumber === 0 ? "" : `#${String(snapshot.turnNumber)}`,
    enumWord(SnapshotKind[snapshot.kind]),
    outcomeOf(snapshot) ?? "",
    formatAge(nowMs - createdAtMs(snapshot)),
    formatSize(Number(snapshot.usedBytes)),
    snapshot.snapshotId,
    [printable(snapshot.name), printable(snapshot.turnKey), snapshot.head ? HEAD[charset] : ""]
      .filter((word) => word !== "")
      .join("  "),
  ]);
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((cells) => displayWidth(cells[column] ?? ""))),
  );
  const nodes = snapshots.map((snapshot, index) => ({
    id: snapshot.snapshotId,
    parentId: snapshot.parentSnapshotId,
    createdAtMs: createdAtMs(snapshot),
    label: setOff(
      (rows[index] ?? [])
        .map((cell, column) => padToWidth(cell, widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
      { snapshot, style },
    ),
  }));
  const headId = snapshots.find((snapshot) => snapshot.head)?.snapshotId;
  return drawTurnTree(nodes, headId, TREE_SHAPES[charset]);
}

/** Where the files continue from is what people look for first, and then what went wrong. */
function setOff(label: string, { snapshot, style }: { readonly snapshot: Snapshot; readonly style: Style }): string {
  if (snapshot.head) return style.bold(label);
  if (snapshot.kind === SnapshotKind.UNDO) return style.dim(label);
  return snapshot.outcome === TurnOutcome.FAILED ? style.paint("red", label) : label;
}
