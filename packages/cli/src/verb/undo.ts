import type { Command } from "commander";
import { formatAge } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { newestUndo } from "@turnbox/client/internal";
import { type RollbackOptions, rollBack, withRollbackOptions } from "./rollback.ts";

export function registerUndo(program: Command, invocation: Invocation): void {
  withExamples(
    withRollbackOptions(
      withServerOptions(program.command("undo <id>"))
        .summary("take the last rollback back")
        .description(
          "Bring the files back to how they were before the last rollback. That is a rollback too, so what was written since " +
            "is sealed, and a second undo takes the first one back. `turnbox log` shows everything else to go back to.",
        ),
    ),
    [
      ["turnbox undo web", "as if the last rollback had not been"],
      ["turnbox undo web", "once more: as if the undo had not been"],
    ],
  ).action(async (id: string, options: RollbackOptions & ServerOptions) => {
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const before = newestUndo(await sandbox.snapshots({ kinds: ["undo"], signal }), { remedy: remedyFor(id) });
    const { id: snapshotId } = before;
    const { undoSnapshotId, generation } = await rollBack(sandbox, { snapshotId, options }, invocation);
    const age = formatAge(surroundings.clock.nowMs() - before.createdAt.getTime());
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, snapshotId, undoSnapshotId, generation },
      text:
        `the files are as they were before the rollback of ${age === "now" ? "just now" : `${age} ago`} (${snapshotId}); ` +
        `redo with: turnbox undo ${id}\n`,
    });
  });
}

const remedyFor = (id: string): string =>
  `\`turnbox log ${id}\` shows what there is to go back to, with \`turnbox rollback\`.`;
