import { type GvisorContext, liveState } from "../context.ts";
import { execFiles, listExecFiles, listIdleFiles, removeExecFiles } from "./exec-files.ts";
import { endRunscClients, findRunscClients } from "../container/runsc-clients.ts";
import type { TreeKiller } from "./tree-killer.ts";

/**
 * Ends the executions of earlier instances whose process still runs. Such an execution has a file, and its process inside
 * is alive, by its own word or because its host-side command still waits for it. If the process has exited, what it
 * left in the background lives on, and only the file goes.
 */
export async function quiesceContainer(
  context: GvisorContext,
  id: string,
  { treeKiller, signal }: { readonly treeKiller: TreeKiller; readonly signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted();
  const { layout, clock } = context;
  const foreign = (marker: string | undefined): boolean => marker === undefined || !context.ownExecs.has(marker);
  // A shell that had no call ended with its service.
  for (const marker of (await listIdleFiles(layout, id)).filter(foreign))
    removeExecFiles(execFiles(layout, id, marker));
  const files = [...(await listExecFiles(layout, id))].filter(([marker]) => foreign(marker));
  // The file is there before the command is, and goes after it: without one there is nothing to look for.
  if (files.length === 0) return;
  const clients = (await findRunscClients(layout, id)).filter(
    ({ subcommand, marker }) => subcommand === "exec" && foreign(marker),
  );
  if ((await liveState(context, id)) !== undefined) {
    const records = files.map(([marker, pid]) => ({ marker, pid }));
    const led = await treeKiller.findLed(id, records);
    for (const { marker, pid } of records) {
      if (!led.has(marker) && !clients.some((client) => client.marker === marker)) continue;
      signal.throwIfAborted();
      await treeKiller.kill(id, pid > 0 ? { marker, pid } : { marker });
    }
  }
  await endRunscClients(clients, clock);
  for (const [marker] of files) removeExecFiles(execFiles(layout, id, marker));
}
