import type { Command } from "commander";
import type { Fork, Sandbox } from "@turnbox/client";
import { invalidArgument } from "@turnbox/core";
import { toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";
import { toMadeView } from "../sandbox-view.ts";

interface ForkOptions extends ServerOptions {
  readonly count: string;
  readonly from?: string;
  readonly label?: readonly string[];
}

const MAX_CHILDREN = 100;

export function registerFork(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("fork <id>"))
      .summary("make sandboxes from the files of another one")
      .description(
        "Make new sandboxes from the files of this one, as they are now or as they were in a snapshot, and print their ids. " +
          "They live on the same host and do not depend on the parent; processes are not copied.",
      )
      .option("-n, --count <number>", `how many, at most ${String(MAX_CHILDREN)}`, "1")
      .option("--from <snapshot>", `a snapshot: ${SNAPSHOT_RULE} (default: the present files)`)
      .option("--label <key=value>", "a label instead of the parent's; may be given several times", collect),
    [
      ["turnbox fork web", "one more like it"],
      ["turnbox fork web -n 3 --from 12 --label try=fix", "three from turn 12"],
    ],
  ).action(async (id: string, options: ForkOptions) => {
    const count = parseCount(options.count);
    const labels = parsePairs(options.label, "label");
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const from = await snapshotOf(sandbox, options.from, invocation);
    const children = await whileWorking(
      {
        text: count === 1 ? "making a sandbox" : `making ${String(count)} sandboxes`,
        options,
        work: () => sandbox.fork({ count, labels, ...(from === undefined ? {} : { from }), signal }),
      },
      invocation,
    );
    await report({ sandboxId: sandbox.id, children, options }, invocation);
  });
}

interface Report {
  readonly sandboxId: string;
  readonly children: readonly Fork[];
  readonly options: ForkOptions;
}

/** Ids on stdout; what was not made on stderr, and in the exit code. */
async function report({ sandboxId, children, options }: Report, invocation: Invocation): Promise<void> {
  const output = invocation.output(options);
  await output.result({
    json: {
      sandboxId,
      children: children.map(({ sandbox, error }) =>
        error === undefined ? toMadeView(sandbox) : toErrorReport(error),
      ),
    },
    text: children.map(({ sandbox }) => (sandbox === undefined ? "" : `${sandbox.id}\n`)).join(""),
  });
  const failures = children.flatMap(({ error }) => (error === undefined ? [] : [error]));
  const [first] = failures;
  if (first === undefined) return;
  await output.note(
    `${String(failures.length)} of ${String(children.length)} were not made, the first because of this:`,
  );
  if (output.format === "text") await output.error(first);
  invocation.exitWith(exitCodeOf(first));
}

/** The id of the snapshot to fork from; undefined for the present files. */
async function snapshotOf(
  sandbox: Sandbox,
  reference: string | undefined,
  { signal }: Invocation,
): Promise<string | undefined> {
  return reference === undefined ? undefined : matchSnapshot(reference, await sandbox.snapshots({ signal }));
}

function parseCount(raw: string): number {
  const count = /^\d{1,3}$/.test(raw) ? Number(raw) : 0;
  if (count < 1 || count > MAX_CHILDREN)
    throw invalidArgument("count", `${JSON.stringify(raw)} is not a number from 1 to ${String(MAX_CHILDREN)}`);
  return count;
}
