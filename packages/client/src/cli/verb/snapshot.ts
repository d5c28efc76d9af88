import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { whileWorking } from "../progress/while-working.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { matchSnapshot, SNAPSHOT_RULE } from "../resolve/snapshot-reference.ts";
import { toSnapshotView } from "../snapshot-view.ts";

export function registerSnapshot(program: Command, invocation: Invocation): void {
  const snapshot = withServerOptions(program.command("snapshot"))
    .usage("[options] <id> [name]")
    .argument("<id>")
    .argument("[name]")
    .summary("take a snapshot, or remove one")
    .description("Take a snapshot of the present files, outside of the count of turns. The name need not be unique.");
  withExamples(snapshot, [
    ["turnbox snapshot web", "without a name"],
    ["turnbox snapshot web 'before the upgrade'", "with one: `turnbox rollback web 'before the upgrade'` goes back"],
    ["turnbox snapshot rm web 'before the upgrade'", "remove it"],
  ]).action(async (id: string, name: string | undefined, options: ServerOptions) => {
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { snapshot: taken } = await whileWorking(
      {
        text: "taking a snapshot",
        options,
        work: () =>
          sandbox.host.snapshots.createSnapshot(
            { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId, name: name ?? "" },
            { signal: invocation.signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    if (taken === undefined) throw new SandboxError("INTERNAL", "the host's answer has no snapshot");
    const shown = taken.name === "" ? "" : ` ${printable(taken.name)}`;
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, ...toSnapshotView(taken) },
      text: `${taken.snapshotId}${shown}\n`,
    });
  });
  registerSnapshotRm(snapshot, invocation);
}

function registerSnapshotRm(snapshot: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(snapshot.command("rm <id> <snapshot>"))
      .summary("remove a snapshot")
      .description(`Remove a snapshot that nothing depends on: ${SNAPSHOT_RULE}.`),
    [
      ["turnbox snapshot rm web 'before the upgrade'", "by its name"],
      ["turnbox snapshot rm web '#3'", "a turn's"],
    ],
  ).action(async (id: string, reference: string, _options: ServerOptions, command: Command) => {
    const { signal } = invocation;
    // `snapshot` takes the same options, and gets those that stand here.
    const options: ServerOptions = command.optsWithGlobals();
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const snapshotId = matchSnapshot(reference, await listSnapshots(sandbox, { signal }));
    await sandbox.host.snapshots.deleteSnapshot(
      { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId, snapshotId },
      { signal, timeoutMs: CALL_MS.change },
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, snapshotId, removed: true },
      text: `removed ${snapshotId}\n`,
    });
  });
}
