import { hasReason } from "@turnbox/core";
import { afterStep, type GraphStep, type HeadGraph, nextCollectStep, nextShrinkStep } from "../head-graph.ts";
import { checkHead, checkToken, headNotFound } from "../names.ts";
import type { HeadRef, StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { mountOf } from "./heads.ts";
import { endJournals } from "./journals.ts";
import { filesystemOf, generationOf, headOf, shortName } from "./layout.ts";
import { clonedElsewhere } from "./lineage.ts";
import { destroySession } from "./sessions.ts";
import type { Outcome } from "./zfs-command.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** Refusals that pass when the user of the head, or a snapshot taken by hand, is gone. */
const PASSING: ReadonlySet<string | undefined> = new Set(["busy", "dependents", "children"]);

/** Cut off at any point, the same call again goes on: a head that was emptied and not destroyed has no snapshots. */
export async function collectHeads(pool: ZfsPool, keep: HeadRef, { signal }: StorageCall): Promise<readonly HeadRef[]> {
  checkHead(keep);
  const { token, generation: kept } = keep;
  let graph = await readGraph(pool, token, signal);
  if (!graph.heads.some(({ generation }) => generation === kept)) throw headNotFound(keep);
  const busy = new Set(beingSent(pool, token));
  const gone: HeadRef[] = [];
  for (;;) {
    const step = nextCollectStep(graph, { kept, busy });
    if (step === undefined) return gone;
    const generation = step.kind === "promote" ? step.over : step.generation;
    try {
      await unmount(pool, { token, generation }, signal);
      await takeStep(pool, { token, step, scope: "alone" }, signal);
    } catch (thrown) {
      if (!isPassing(thrown)) throw thrown;
      busy.add(generation);
      continue;
    }
    graph = afterStep(graph, step);
    if (step.kind === "destroy-head") gone.push({ token, generation });
  }
}

export async function shrinkSession(pool: ZfsPool, token: string, { signal }: StorageCall): Promise<void> {
  checkToken(token);
  let graph = await readGraph(pool, token, signal);
  const sent = new Set(beingSent(pool, token));
  if (graph.pinned.size === 0 && sent.size === 0) {
    await destroySession(pool, token, { signal });
    return;
  }
  await endJournals(pool, token, { patienceMs: pool.limits.busyPatienceMs, signal });
  for (const { generation } of graph.heads) await unmount(pool, { token, generation }, signal);
  for (let step = nextShrinkStep(graph); step !== undefined; step = nextShrinkStep(graph)) {
    // A stream may be under way from any of its snapshots; the next call goes on.
    if (sent.has(step.kind === "promote" ? step.over : step.generation)) return;
    await takeStep(pool, { token, step, scope: "with-snapshots" }, signal);
    graph = afterStep(graph, step);
  }
}

/** Generations of heads of which a snapshot is being sent. */
function beingSent({ leases, layout }: ZfsPool, token: string): readonly number[] {
  return leases.startingWith(`${layout.session(token)}/`).map((snapshot) => generationOf(snapshot) ?? 0);
}

async function readGraph({ datasets, layout }: ZfsPool, token: string, signal: AbortSignal): Promise<HeadGraph> {
  const root = layout.session(token);
  const [present, lineage] = await Promise.all([datasets.list(root, signal), datasets.lineage(root, signal)]);
  const snapshots = Map.groupBy(
    present.filter(({ kind }) => kind === "snapshot"),
    ({ name }) => filesystemOf(name),
  );
  const isWithin = (name: string | undefined): name is string => name?.startsWith(`${root}/`) === true;
  const found = present.flatMap((dataset) => {
    const head = headOf(layout, dataset.name);
    return head === undefined ? [] : [{ ...dataset, generation: head.generation }];
  });
  const heads = found.map(({ name, generation, origin }) => ({
    generation,
    ...(isWithin(origin) ? { origin: shortName(origin) } : {}),
    snapshots: (snapshots.get(name) ?? []).map((snapshot) => shortName(snapshot.name)),
  }));
  return { heads, pinned: new Set(clonedElsewhere(lineage, found).map(shortName)) };
}

async function unmount(pool: ZfsPool, head: HeadRef, signal: AbortSignal): Promise<void> {
  const { mounts, flavor, limits } = pool;
  await mounts.unmount(mountOf(pool, head), { flavor, patienceMs: limits.busyPatienceMs, signal });
}

async function takeStep(
  pool: ZfsPool,
  {
    token,
    step,
    scope,
  }: { readonly token: string; readonly step: GraphStep; readonly scope: "alone" | "with-snapshots" },
  signal: AbortSignal,
): Promise<void> {
  const { datasets, layout, mounts, limits } = pool;
  const head = layout.head({ token, generation: step.generation });
  if (step.kind === "promote") {
    throwIfRefused("promoting a head", await promote(pool, head, { ...step, token, signal }));
    return;
  }
  const name = step.kind === "destroy-head" ? head : `${head}@${step.snapshot}`;
  const outcome = await datasets.destroy(name, {
    scope: step.kind === "destroy-head" ? scope : "alone",
    patienceMs: limits.busyPatienceMs,
    signal,
  });
  throwIfRefused("destroying what nothing depends on", outcome);
  if (step.kind === "destroy-head") await mounts.removeMountPoint(mountOf(pool, { token, ...step }).path, signal);
}

async function promote(
  { zfs, datasets, layout }: ZfsPool,
  head: string,
  { token, over, signal }: StorageCall & { readonly token: string; readonly over: number },
): Promise<Exclude<Outcome, { kind: "unknown" }>> {
  const old = layout.head({ token, generation: over });
  const isDone = async (probe: AbortSignal): Promise<boolean> =>
    (await datasets.find(head, probe))?.origin?.startsWith(`${old}@`) === false;
  return await zfs.change({ program: "zfs", args: ["promote", head], doing: "promoting a head", isDone }, signal);
}

function throwIfRefused(doing: string, outcome: Exclude<Outcome, { kind: "unknown" }>): void {
  if (outcome.kind === "refused") throw storageError(doing, outcome);
}

function isPassing(thrown: unknown): boolean {
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && PASSING.has(thrown.metadata["failure"]);
}
