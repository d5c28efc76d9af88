import { z } from "zod";
import type { FileChange } from "@turnbox/client";
import { defineTool, REFERENCE, toTarget } from "./own-tool.ts";
import { headOf } from "./turn-tools.ts";

const LISTED_CHANGES = 200;
const MAX_TEXT_BYTES = 64 * 1024;

export const DIFF = defineTool({
  name: "diff",
  title: "Show what changed",
  description:
    "Shows which files changed from one turn to another, or to now, with the changed lines of text files. Without arguments: " +
    "everything since the last turn.",
  hints: { readOnlyHint: true, openWorldHint: false },
  input: z.strictObject({
    from: REFERENCE.optional().describe("A turn's number, or the id of a snapshot; the last one unless given."),
    to: REFERENCE.optional().describe("The same; the present files unless given."),
    path: z.string().optional().describe("Only what is at or below this path."),
    lines: z.boolean().optional().describe("Whether to show changed lines; true unless given."),
  }),
  run: async ({ from, to, path, lines = true }, { workspace, signal }) => {
    const sandbox = await workspace.current({ signal });
    const changes = await sandbox.diff({
      from: from === undefined ? headOf(await sandbox.snapshots({ signal })).id : toTarget(from),
      ...(to === undefined ? {} : { to: toTarget(to) }),
      ...(path === undefined ? {} : { path }),
      text: lines,
      maxTextBytes: MAX_TEXT_BYTES,
      signal,
    });
    const listed = changes.slice(0, LISTED_CHANGES);
    const more = changes.length - listed.length;
    const text = [
      ...listed.map(describeChange),
      ...(more === 0 ? [] : [`and ${String(more)} more; give a path to see fewer`]),
    ].join("\n");
    return { text: text || "Nothing changed.", facts: { changes: listed.map(toFacts), unlisted: more } };
  },
});

function describeChange(change: FileChange): string {
  const { kind, path, oldPath, oldSizeBytes, newSizeBytes, unifiedDiff, diffTruncated } = change;
  const from = oldPath === undefined ? "" : ` (from ${oldPath})`;
  const line = `${kind.replace("_", " ")} ${path}${from}, ${String(oldSizeBytes)} -> ${String(newSizeBytes)} bytes`;
  const cut = diffTruncated ? "\n[the changed lines are too many to show]" : "";
  return unifiedDiff === undefined || unifiedDiff === "" ? `${line}${cut}` : `${line}\n${unifiedDiff.trimEnd()}${cut}`;
}

const toFacts = ({
  kind,
  path,
  oldPath,
  oldSizeBytes,
  newSizeBytes,
  binary,
  unifiedDiff,
  diffTruncated,
}: FileChange) => ({
  kind,
  path,
  ...(oldPath === undefined ? {} : { oldPath }),
  oldSizeBytes,
  newSizeBytes,
  binary,
  ...(unifiedDiff === undefined || unifiedDiff === "" ? {} : { unifiedDiff }),
  ...(diffTruncated ? { diffTruncated } : {}),
});
