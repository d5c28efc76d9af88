import { randomUUID } from "node:crypto";
import { type Command, Option } from "commander";
import { ProcessesPolicy } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { listSnapshots } from "../resolve/list-snapshots.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { matchSnapshot } from "../resolve/snapshot-reference.ts";

const PROCESSES = { stop: ProcessesPolicy.STOP, refuse: ProcessesPolicy.REFUSE } as const;

interface RollbackOptions extends ServerOptions {
  readonly processes: keyof typeof PROCESSES;
}

export function registerRollback(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("rollback <id> <snapshot>"))
      .summary("bring a sandbox's files back to a snapshot")
      .description(
        "Bring the files back to a snapshot: its id, a unique prefix of it, or a turn's number (3 or #3, quoted). " +
          "Nothing is lost: the present files are sealed first, and a rollback to that snapshot is the undo.",
      )
      .addOption(
        new Option("--processes <policy>", "what happens with launched processes")
          .choices(Object.keys(PROCESSES))
          .default("stop"),
      ),
    [
      ["turnbox rollback web 3", "back to turn 3"],
      ["turnbox rollback web k7f2", "back to the snapshot whose id begins so"],
    ],
  ).action(async (id: string, reference: string, options: RollbackOptions) => {
    const { signal } = invocation;
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const snapshotId = matchSnapshot(reference, await listSnapshots(sandbox, { signal }));
    const { undoSnapshotId, generation } = await sandbox.host.snapshots.rollbackSession(
      {
        idempotencyKey: randomUUID(),
        sessionId: sandbox.sessionId,
        snapshotId,
        processes: PROCESSES[options.processes],
      },
      { signal, timeoutMs: CALL_MS.change },
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, snapshotId, undoSnapshotId, generation },
      text: `back at ${snapshotId}; undo with: turnbox rollback ${id} ${undoSnapshotId}\n`,
    });
  });
}
