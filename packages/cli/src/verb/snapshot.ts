import type { Command } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { whileWorking } from "../progress/while-working.ts";
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
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const taken = await whileWorking(
      {
        text: "taking a snapshot",
        options,
        work: () => sandbox.snapshot(name ?? "", { signal }),
      },
      invocation,
    );
    const shown = taken.name === undefined ? "" : ` ${printable(taken.name)}`;
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, ...toSnapshotView(taken) },
      text: `${taken.id}${shown}\n`,
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
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const snapshotId = matchSnapshot(reference, await sandbox.snapshots({ signal }));
    await sandbox.deleteSnapshot(snapshotId, { signal });
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, snapshotId, removed: true },
      text: `removed ${snapshotId}\n`,
    });
  });
}
