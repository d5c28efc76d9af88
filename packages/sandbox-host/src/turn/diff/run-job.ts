import { showPath, toBytePath } from "./byte-path.ts";
import type { Change } from "./change.ts";
import { compareTrees, pathOf } from "./compare-trees.ts";
import type { Difference } from "./comparison.ts";
import { DiffFailure } from "./failure.ts";
import type { DiffJob } from "./job.ts";
import { EVERYTHING, scopeOf } from "./scope.ts";
import { createTextDiffs, NO_TEXT } from "./text-diff.ts";
import { openTree } from "./tree.ts";

const NS_PER_SECOND = 1_000_000_000n;

/** Does a job, change by change. `tick` is called again and again and throws to end it; `nowMs` never goes back. */
export function* runJob(
  job: DiffJob,
  { nowMs, tick }: { readonly nowMs: () => number; readonly tick: () => void },
): Generator<Change> {
  const trees = { from: openTree(job.from), to: openTree(job.to) };
  const differences = compareTrees(trees, {
    path: toBytePath(job.path),
    scope: job.candidates === null ? EVERYTHING : scopeOf(job.candidates),
    commonUntilNs: BigInt(job.commonUntilSecond) * NS_PER_SECOND,
    maxEntries: job.maxEntries,
    maxChanges: job.maxChanges,
    tick,
  });
  let leftBytes = job.maxPathBytes;
  for (const { from, to } of differences) leftBytes -= (from?.path.length ?? 0) + (to?.path.length ?? 0);
  if (leftBytes < 0) throw new DiffFailure("limit", "has changes whose paths are too long for one answer");
  const textOf = job.text === null ? () => NO_TEXT : createTextDiffs(trees, job.text, nowMs);
  for (const difference of differences) {
    tick();
    yield { ...describe(difference), ...textOf(difference) };
  }
}

function describe(difference: Difference): Omit<Change, keyof typeof NO_TEXT> {
  const { kind, from, to } = difference;
  return {
    kind,
    path: showPath(pathOf(difference)),
    oldPath: kind === "renamed" && from !== null ? showPath(from.path) : "",
    oldSizeBytes: from?.entry.sizeBytes ?? 0,
    newSizeBytes: to?.entry.sizeBytes ?? 0,
  };
}
