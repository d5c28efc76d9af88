import type { Command } from "commander";
import type { Snapshot } from "@turnbox/client";
import type { Charset } from "@turnbox/client/internal";
import { displayWidth, padToWidth } from "../format/display-width.ts";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { toSnapshotView } from "../snapshot-view.ts";
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
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const snapshots = await sandbox.snapshots({ signal });
    const head = snapshots.find((snapshot) => snapshot.head)?.id;
    const output = invocation.output(options);
    const nowMs = surroundings.clock.nowMs();
    await output.result({
      json: { sandboxId: sandbox.id, head: head ?? null, snapshots: snapshots.map(toSnapshotView) },
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
  const rows = snapshots.map((snapshot) => [
    snapshot.turnNumber === undefined ? "" : `#${String(snapshot.turnNumber)}`,
    snapshot.kind,
    snapshot.outcome ?? "",
    formatAge(nowMs - snapshot.createdAt.getTime()),
    formatSize(snapshot.usedBytes),
    snapshot.id,
    [printable(snapshot.name ?? ""), printable(snapshot.turnKey ?? ""), snapshot.head ? HEAD[charset] : ""]
      .filter((word) => word !== "")
      .join("  "),
  ]);
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((cells) => displayWidth(cells[column] ?? ""))),
  );
  const nodes = snapshots.map((snapshot, index) => ({
    id: snapshot.id,
    ...(snapshot.parentId === undefined ? {} : { parentId: snapshot.parentId }),
    createdAtMs: snapshot.createdAt.getTime(),
    label: setOff(
      (rows[index] ?? [])
        .map((cell, column) => padToWidth(cell, widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
      { snapshot, style },
    ),
  }));
  const headId = snapshots.find((snapshot) => snapshot.head)?.id;
  return drawTurnTree(nodes, headId, TREE_SHAPES[charset]);
}

/** Where the files continue from is what people look for first, and then what went wrong. */
function setOff(label: string, { snapshot, style }: { readonly snapshot: Snapshot; readonly style: Style }): string {
  if (snapshot.head) return style.bold(label);
  if (snapshot.kind === "undo") return style.dim(label);
  return snapshot.outcome === "failed" ? style.paint("red", label) : label;
}
