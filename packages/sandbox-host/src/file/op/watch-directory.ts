import { fstatSync } from "node:fs";
import type { OperationContext } from "../operation.ts";
import { toText } from "../path.ts";
import { createWatchedTree, type WatchEvent } from "../watch/watched-tree.ts";

export interface WatchInput {
  readonly path: string;
  readonly depth: "one" | "all";
}

/** Longer than this without a look at the system's queue, and it may have run over unseen. */
const MAX_BLIND_MS = 1000;

/**
 * Sends what happens below a directory until the worker is killed, or the directory is gone. The system tells which names
 * to look at (also of writes from inside the sandbox, which reach it as its own); what happened to them is seen by
 * looking. Names that come and go between two looks are not told, and neither are writes through a memory mapping.
 */
export async function watchDirectory({ walk, send }: OperationContext, { path, depth }: WatchInput): Promise<null> {
  const over = Promise.withResolvers<null>();
  using top = walk.directory(path);
  const here = toText(top.path);
  const overflow: WatchEvent = { kind: "overflow", path: here, oldPath: "" };
  let isAsked = false;
  using tree = createWatchedTree(top, { depth, onChange: ask });
  const tell = (events: readonly WatchEvent[]): void => {
    const startedMs = performance.now();
    send(new Uint8Array(), events);
    if (performance.now() - startedMs < MAX_BLIND_MS) return;
    tree.resync();
    send(new Uint8Array(), [overflow]);
  };
  const look = (): void => {
    isAsked = false;
    const { events, isComplete } = tree.look();
    const all = isComplete ? events : [...events, overflow];
    if (all.length > 0) tell(all);
    if (fstatSync(top.descriptor).nlink > 0) return;
    tell([{ kind: "removed", path: here, oldPath: "" }]);
    over.resolve(null);
  };
  // What the system tells at once, such as both ends of a rename, is looked at together.
  function ask(): void {
    if (isAsked) return;
    isAsked = true;
    setImmediate(() => {
      try {
        look();
      } catch (thrown) {
        over.reject(thrown);
      }
    });
  }
  // Nothing else is read from the input meanwhile; its end is the service's.
  process.stdin.once("end", () => process.exit(0)).resume();
  tell([{ kind: "started", path: here, oldPath: "" }, ...(tree.isWhole ? [] : [overflow])]);
  return await over.promise;
}
