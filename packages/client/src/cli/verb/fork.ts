import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { invalidArgument, isReason, SandboxError } from "@turnbox/core";
import type { ForkSandboxResult } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { TurnboxClients } from "../../client.ts";
import { CALL_MS } from "../deadline.ts";
import { toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { openSandbox, resolveSandbox } from "../resolve/resolve-sandbox.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";
import { toSandboxView } from "../sandbox-view.ts";

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
    using server = await invocation.server(options);
    const sandboxId = await resolveSandbox(server, id, invocation);
    const snapshotId = await snapshotOf({ server, sandboxId, reference: options.from }, invocation);
    const { results } = await whileWorking(
      {
        text: count === 1 ? "making a sandbox" : `making ${String(count)} sandboxes`,
        options,
        work: () =>
          server.sandboxes.forkSandbox(
            { idempotencyKey: randomUUID(), sandboxId, snapshotId, count, labels },
            { signal: invocation.signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    await report({ sandboxId, children: results.map(toChild), options }, invocation);
  });
}

type Child = { readonly sandbox: ReturnType<typeof toSandboxView> } | { readonly error: SandboxError };

interface Report {
  readonly sandboxId: string;
  readonly children: readonly Child[];
  readonly options: ForkOptions;
}

/** Ids on stdout; what was not made on stderr, and in the exit code. */
async function report({ sandboxId, children, options }: Report, invocation: Invocation): Promise<void> {
  const output = invocation.output(options);
  await output.result({
    json: {
      sandboxId,
      children: children.map((child) => ("error" in child ? toErrorReport(child.error) : child.sandbox)),
    },
    text: children.map((child) => ("error" in child ? "" : `${child.sandbox.sandboxId}\n`)).join(""),
  });
  const failures = children.flatMap((child) => ("error" in child ? [child.error] : []));
  const [first] = failures;
  if (first === undefined) return;
  await output.note(
    `${String(failures.length)} of ${String(children.length)} were not made, the first because of this:`,
  );
  if (output.format === "text") await output.error(first);
  invocation.exitWith(exitCodeOf(first));
}

function toChild({ result, message }: ForkSandboxResult): Child {
  if (result.case === "sandbox") return { sandbox: toSandboxView(result.value) };
  const stated = result.value ?? "";
  return { error: new SandboxError(isReason(stated) ? stated : "INTERNAL", message) };
}

interface From {
  readonly server: TurnboxClients;
  readonly sandboxId: string;
  readonly reference: string | undefined;
}

/** The id of the snapshot to fork from; empty is the present files. */
async function snapshotOf({ server, sandboxId, reference }: From, invocation: Invocation): Promise<string> {
  if (reference === undefined) return "";
  using sandbox = await openSandbox(server, sandboxId, invocation);
  return matchSnapshot(reference, await listSnapshots(sandbox, invocation));
}

function parseCount(raw: string): number {
  const count = /^\d{1,3}$/.test(raw) ? Number(raw) : 0;
  if (count < 1 || count > MAX_CHILDREN)
    throw invalidArgument("count", `${JSON.stringify(raw)} is not a number from 1 to ${String(MAX_CHILDREN)}`);
  return count;
}
