import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { formatAge } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { listSnapshots } from "../../sandbox/turn/list-snapshots.ts";
import { newestUndo } from "../../sandbox/turn/newest-undo.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const before = newestUndo(await listSnapshots(sandbox, { signal }), { remedy: remedyFor(id) });
    const { snapshotId } = before;
    const { undoSnapshotId, generation } = await rollBack(sandbox, { snapshotId, options }, invocation);
    const ageMs = surroundings.clock.nowMs() - (before.createdAt === undefined ? 0 : timestampMs(before.createdAt));
    const age = formatAge(ageMs);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, snapshotId, undoSnapshotId, generation },
      text:
        `the files are as they were before the rollback of ${age === "now" ? "just now" : `${age} ago`} (${snapshotId}); ` +
        `redo with: turnbox undo ${id}\n`,
    });
  });
}

const remedyFor = (id: string): string =>
  `\`turnbox log ${id}\` shows what there is to go back to, with \`turnbox rollback\`.`;
