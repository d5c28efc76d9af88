import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import type { Snapshot } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { CALL_MS } from "../deadline.ts";
import { type ChangeView, toChangeView } from "../diff/change-view.ts";
import { summarize } from "../diff/diff-summary.ts";
import { formatDiff } from "../diff/format-diff.ts";
import { parseSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { type OpenSandbox, openSandbox } from "../resolve/resolve-sandbox.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";

interface DiffOptions extends ServerOptions {
  readonly text?: boolean;
  readonly path?: string;
  readonly maxText?: string;
}

const PAGE_SIZE = 1000;

/** What stands for the present files where a snapshot is expected. */
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
    const maxTextBytes = options.maxText === undefined ? 0n : BigInt(parseSize(options.maxText, "max-text"));
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const snapshots = await listSnapshots(sandbox, { signal });
    const fromSnapshotId = from === undefined ? headOf(snapshots, id) : matchSnapshot(from, snapshots);
    const toSnapshotId = to === undefined || to === NOW ? "" : matchSnapshot(to, snapshots);
    const question = {
      fromSnapshotId,
      toSnapshotId,
      text: options.text === true,
      maxTextBytes,
      path: options.path ?? "",
    };
    const changes = await listChanges(sandbox, question, { signal });
    const output = invocation.output(options);
    const text = question.text ? "with text" : "without text";
    await output.result({
      json: {
        sandboxId: sandbox.sandboxId,
        from: fromSnapshotId,
        to: toSnapshotId === "" ? null : toSnapshotId,
        summary: summarize(changes),
        changes,
      },
      text: formatDiff(changes, { style: output, text }),
    });
  });
}

function headOf(snapshots: readonly Snapshot[], id: string): string {
  const head = snapshots.find((snapshot) => snapshot.head);
  if (head !== undefined) return head.snapshotId;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", "there is no snapshot yet that the files continue from", {
    metadata: { remedy: `Seal a turn with \`turnbox turn ${id}\`, or name a snapshot of \`turnbox log ${id}\`.` },
  });
}

interface Question {
  readonly fromSnapshotId: string;
  readonly toSnapshotId: string;
  readonly text: boolean;
  readonly maxTextBytes: bigint;
  readonly path: string;
}

/** All pages. */
async function listChanges(
  { host, sessionId }: OpenSandbox,
  question: Question,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly ChangeView[]> {
  const changes: ChangeView[] = [];
  let pageToken = "";
  do {
    const page = await host.snapshots.diffSnapshots(
      { sessionId, ...question, page: { pageSize: PAGE_SIZE, pageToken } },
      { signal, timeoutMs: CALL_MS.change },
    );
    changes.push(...page.changes.map(toChangeView));
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return changes;
}
