import type { Command } from "commander";
import type { Snapshot } from "@turnbox/client";
import { SandboxError } from "@turnbox/core";
import { toChangeView } from "../diff/change-view.ts";
import { summarize } from "../diff/diff-summary.ts";
import { formatDiff } from "../diff/format-diff.ts";
import { parseSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";

interface DiffOptions extends ServerOptions {
  readonly text?: boolean;
  readonly path?: string;
  readonly maxText?: string;
}

/** What stands for the present files if a snapshot is expected. */
const NOW = "now";

export function registerDiff(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("diff <id> [from] [to]"))
      .summary("show what changed between two snapshots")
      .description(
        "Show what changed from one snapshot to another or to the present files (now, the default). Without FROM it is the " +
          `snapshot that the files continue from. A snapshot is ${SNAPSHOT_RULE}. A is added, D removed, M modified, R ` +
          "renamed, T of another type.",
      )
      .option("--text", "with unified diffs of text files")
      .option("--path <directory>", "only what is below this directory")
      .option("--max-text <size>", "most text for each 1000 differences (default: 1MiB)"),
    [
      ["turnbox diff web", "since the last turn"],
      ["turnbox diff web 3 5 --text", "what turns 4 and 5 did, line by line"],
      ["turnbox diff web 3 now --path /workspace/src", "since turn 3, below a directory"],
    ],
  ).action(async (id: string, from: string | undefined, to: string | undefined, options: DiffOptions) => {
    const { signal } = invocation;
    const { path, maxText } = options;
    const bounds = maxText === undefined ? {} : { maxTextBytes: parseSize(maxText, "max-text") };
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const snapshots = await sandbox.snapshots({ signal });
    const fromId = from === undefined ? headOf(snapshots, id) : matchSnapshot(from, snapshots);
    const toId = to === undefined || to === NOW ? undefined : matchSnapshot(to, snapshots);
    const isText = options.text === true;
    const question = {
      from: fromId,
      ...(toId === undefined ? {} : { to: toId }),
      text: isText,
      ...bounds,
      ...(path === undefined ? {} : { path }),
    };
    const changes = (await sandbox.diff({ ...question, signal })).map(toChangeView);
    const output = invocation.output(options);
    const text = isText ? "with text" : "without text";
    await output.result({
      json: {
        sandboxId: sandbox.id,
        from: fromId,
        to: toId ?? null,
        summary: summarize(changes),
        changes,
      },
      text: formatDiff(changes, { style: output, text }),
    });
  });
}

function headOf(snapshots: readonly Snapshot[], id: string): string {
  const head = snapshots.find((snapshot) => snapshot.head);
  if (head !== undefined) return head.id;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", "there is no snapshot yet that the files continue from", {
    metadata: { remedy: `Seal a turn with \`turnbox turn ${id}\`, or name a snapshot of \`turnbox log ${id}\`.` },
  });
}
