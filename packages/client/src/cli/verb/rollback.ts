import { randomUUID } from "node:crypto";
import { type Command, Option } from "commander";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ProcessesPolicy, type RollbackSessionResponse } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { type OpenSandbox, openSandbox } from "../resolve/resolve-sandbox.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";

const PROCESSES = { stop: ProcessesPolicy.STOP, refuse: ProcessesPolicy.REFUSE } as const;
const TOOLS = { refuse: ToolsPolicy.REFUSE, wait: ToolsPolicy.WAIT } as const;

export interface RollbackOptions {
  readonly processes: keyof typeof PROCESSES;
  readonly tools: keyof typeof TOOLS;
}

/** The options of every verb that rolls back. */
export function withRollbackOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--processes <policy>", "what happens with launched processes")
        .choices(Object.keys(PROCESSES))
        .default("stop"),
    )
    .addOption(
      new Option("--tools <policy>", "running tools: refuse while there are any, or wait for them")
        .choices(Object.keys(TOOLS))
        .default("refuse"),
    );
}

/** Brings a sandbox back to a snapshot, as the options say. */
export async function rollBack(
  { host, sessionId }: OpenSandbox,
  { snapshotId, options }: { readonly snapshotId: string; readonly options: RollbackOptions & ServerOptions },
  invocation: Invocation,
): Promise<RollbackSessionResponse> {
  const processes = PROCESSES[options.processes];
  const tools = TOOLS[options.tools];
  const request = { idempotencyKey: randomUUID(), sessionId, snapshotId, processes, tools };
  const { signal } = invocation;
  const work = () => host.snapshots.rollbackSession(request, { signal, timeoutMs: CALL_MS.change });
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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const snapshotId = matchSnapshot(reference, await listSnapshots(sandbox, { signal }));
    const { undoSnapshotId, generation } = await rollBack(sandbox, { snapshotId, options }, invocation);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, snapshotId, undoSnapshotId, generation },
      text: `back at ${snapshotId}; the files before are ${undoSnapshotId}, undo with: turnbox undo ${id}\n`,
    });
  });
}
