import { namingAborts, Semaphore } from "@turnbox/core";
import { checkPoint, newViewName, viewSnapshotName } from "../names.ts";
import type { StorageCall } from "../storage.ts";
import { type Point, type View, VIEWS_AT_ONCE } from "../views.ts";
import { destroySnapshot } from "./snapshots.ts";
import { endView, makeView } from "./view-datasets.ts";
import { UNDO_DEADLINE_MS, type ZfsPool } from "./zfs-pool.ts";

type Work<T> = (pool: ZfsPool, call: StorageCall) => Promise<T>;

export interface OpenViewsOptions {
  readonly run: <T>(call: StorageCall, work: Work<T>) => Promise<T>;
  /** The same, while nothing else changes in the session. */
  readonly runForSession: <T>(token: string, call: StorageCall, work: Work<T>) => Promise<T>;
}

/** The views that this service has open. */
export interface OpenViews {
  /** Names of those that are open, being opened or being closed: not to be swept away. */
  readonly live: ReadonlySet<string>;
  open(point: Point, call: StorageCall): Promise<View>;
}

export function createOpenViews({ run, runForSession }: OpenViewsOptions): OpenViews {
  const permits = new Semaphore(VIEWS_AT_ONCE);
  const live = new Set<string>();

  /** On its own clock: the caller may be gone. What cannot go is swept away at the next `open`. */
  const close = async (name: string, point: Point): Promise<void> => {
    const call = { signal: AbortSignal.timeout(UNDO_DEADLINE_MS) };
    try {
      await run(call, (pool, inner) => endView(pool, name, inner));
      if (point.kind === "snapshot") return;
      // In turn, because a promotion may be moving it to another head.
      const { token } = point.head;
      const snapshot = { token, name: viewSnapshotName(name) };
      await runForSession(token, call, (pool, inner) => destroySnapshot(pool, snapshot, inner));
    } catch {
      // See above.
    }
  };

  return {
    live,
    open: async (point, call) => {
      checkPoint(point);
      const permit = await namingAborts(permits.acquire(call.signal));
      const name = newViewName();
      live.add(name);
      let closing: Promise<void> | undefined;
      const end = (): Promise<void> =>
        (closing ??= close(name, point).finally(() => {
          live.delete(name);
          permit[Symbol.dispose]();
        }));
      try {
        const { token } = point.kind === "head" ? point.head : point.snapshot;
        const made = await runForSession(token, call, (pool, inner) => makeView(pool, name, { ...inner, point }));
        return { ...made, [Symbol.asyncDispose]: end };
      } catch (thrown) {
        await end();
        throw thrown;
      }
    },
  };
}
