import { type Command, Option } from "commander";
import type { Rollback, Sandbox } from "@turnbox/client";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";

const PROCESSES = ["stop", "refuse"] as const;
const TOOLS = ["refuse", "wait"] as const;

export interface RollbackOptions {
  readonly processes: (typeof PROCESSES)[number];
  readonly tools: (typeof TOOLS)[number];
}

/** The options of every verb that rolls back. */
export function withRollbackOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--processes <policy>", "what happens with launched processes").choices(PROCESSES).default("stop"),
    )
    .addOption(
      new Option("--tools <policy>", "running tools: refuse while there are any, or wait for them")
        .choices(TOOLS)
        .default("refuse"),
    );
}

/** Brings a sandbox back to a snapshot, as the options say. */
export async function rollBack(
  sandbox: Sandbox,
  { snapshotId, options }: { readonly snapshotId: string; readonly options: RollbackOptions & ServerOptions },
  invocation: Invocation,
): Promise<Rollback> {
  const { processes, tools } = options;
  const { signal } = invocation;
  const work = (): Promise<Rollback> => sandbox.rollback(snapshotId, { processes, tools, signal });
  return await whileWorking({ text: "rolling back", options, work }, invocation);
}

export function registerRollback(program: Command, invocation: Invocation): void {
  withExamples(
    withRollbackOptions(
      withServerOptions(program.command("rollback <id> <snapshot>"))
        .summary("bring a sandbox's files back to a snapshot")
        .description(
          `Bring the files back to a snapshot: ${SNAPSHOT_RULE}. Nothing is lost: the present files are sealed first, and ` +
            "`turnbox undo` brings them back.",
        ),
    ),
    [
      ["turnbox rollback web 3", "back to turn 3"],
      ["turnbox rollback web k7f2", "back to the snapshot whose id begins so"],
    ],
  ).action(async (id: string, reference: string, options: RollbackOptions & ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const snapshotId = matchSnapshot(reference, await sandbox.snapshots({ signal }));
    const { undoSnapshotId, generation } = await rollBack(sandbox, { snapshotId, options }, invocation);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, snapshotId, undoSnapshotId, generation },
      text: `back at ${snapshotId}; the files before are ${undoSnapshotId}, undo with: turnbox undo ${id}\n`,
    });
  });
}
