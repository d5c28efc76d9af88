import { fstatSync } from "node:fs";
import type { OperationContext } from "../operation.ts";
import { toText } from "../path.ts";
import { type WatchEvent, WatchedTree } from "../watch/watched-tree.ts";

export interface WatchInput {
  readonly path: string;
  readonly depth: "one" | "all";
}

/** If a send blocks for longer than this, the system's queue of events may have overflowed unseen. */
const MAX_BLIND_MS = 1000;

/**
 * Sends what happens below a directory until the worker is killed, or the directory is gone. The system reports which names
 * to look at (also of writes from inside the sandbox, which it sees as its own); what happened to them is found by a look.
 * Names that come and go between two looks are not reported, and neither are writes through a memory mapping.
 */
export async function watchDirectory({ walk, send }: OperationContext, { path, depth }: WatchInput): Promise<null> {
  const over = Promise.withResolvers<null>();
  using top = walk.directory(path);
  const here = toText(top.path);
  const overflow: WatchEvent = { kind: "overflow", path: here, oldPath: "" };
  let isScheduled = false;
  using tree = new WatchedTree(top, { depth, onChange: schedule });
  const report = (events: readonly WatchEvent[]): void => {
    const startedMs = performance.now();
    send(new Uint8Array(), events);
    if (performance.now() - startedMs < MAX_BLIND_MS) return;
    tree.resync();
    send(new Uint8Array(), [overflow]);
  };
  const look = (): void => {
    isScheduled = false;
    const { events, isComplete } = tree.look();
    const all = isComplete ? events : [...events, overflow];
    if (all.length > 0) report(all);
    if (fstatSync(top.descriptor).nlink > 0) return;
    report([{ kind: "removed", path: here, oldPath: "" }]);
    over.resolve(null);
  };
  // Events that the system reports together, such as both ends of a rename, are looked at together.
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      try {
        look();
      } catch (thrown) {
        over.reject(thrown);
      }
    });
  }
  // Nothing else reads the input meanwhile; its end means that the service is gone.
  process.stdin.once("end", () => process.exit(0)).resume();
  report([{ kind: "started", path: here, oldPath: "" }, ...(tree.isWhole ? [] : [overflow])]);
  return await over.promise;
}
