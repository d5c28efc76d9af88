import { afterStep, type GraphStep, type HeadGraph, nextCollectStep, nextShrinkStep } from "../head-graph.ts";
import type { HeadRef } from "../storage.ts";
import {
  type FakeSession,
  type FakeSnapshot,
  headOf,
  isUsed,
  leaseKeyOf,
  removeHead,
  removeSnapshot,
  sessionOf,
  snapshotsOn,
  type World,
} from "./fake-world.ts";

export async function collectHeads(world: World, keep: HeadRef): Promise<readonly HeadRef[]> {
  const { token, generation: kept } = headOf(world, keep).head;
  const gone: HeadRef[] = [];
  const isSent = ({ info }: FakeSnapshot): boolean => world.leases.has(leaseKeyOf(info));
  const sent = [...sessionOf(world, token).snapshots.values()].filter(isSent);
  const busy = new Set(sent.map(({ info }) => info.generation));
  let graph = readGraph(world, token);
  for (;;) {
    const step = nextCollectStep(graph, { kept, busy });
    if (step === undefined) return gone;
    await takeStep(sessionOf(world, token), step);
    if (step.kind === "destroy-head") gone.push({ token, generation: step.generation });
    graph = afterStep(graph, step);
  }
}

/** Of a session that something outside depends on. */
export async function shrinkPinned(world: World, token: string): Promise<void> {
  const session = sessionOf(world, token);
  for (const head of session.heads.values()) head.mounted = "no";
  let graph = readGraph(world, token);
  for (let step = nextShrinkStep(graph); step !== undefined; step = nextShrinkStep(graph)) {
    await takeStep(session, step);
    graph = afterStep(graph, step);
  }
}

export function isPinned(world: World, session: FakeSession): boolean {
  return [...session.snapshots.values()].some(({ info }) => isUsed(world, info, "outside"));
}

function readGraph(world: World, token: string): HeadGraph {
  const session = sessionOf(world, token);
  const heads = [...session.heads.values()].map(({ head: { generation }, origin }) => ({
    generation,
    ...(origin.kind === "snapshot" && origin.snapshot.token === token ? { origin: origin.snapshot.name } : {}),
    snapshots: snapshotsOn(session, generation).map(({ info }) => info.name),
  }));
  const pinned = [...session.snapshots.values()].filter(({ info }) => isUsed(world, info, "outside"));
  return { heads, pinned: new Set(pinned.map(({ info }) => info.name)) };
}

async function takeStep(session: FakeSession, step: GraphStep): Promise<void> {
  const head = session.heads.get(step.generation);
  if (head === undefined) throw new Error("the fake storage has no such head");
  if (step.kind === "destroy-head") {
    await removeHead(session, head);
    return;
  }
  if (step.kind === "destroy-snapshot") {
    const snapshot = session.snapshots.get(step.snapshot);
    if (snapshot !== undefined) await removeSnapshot(session, snapshot);
    return;
  }
  const old = session.heads.get(step.over);
  if (old === undefined || head.origin.kind === "base") throw new Error("the fake storage cannot promote this head");
  const { origin } = head;
  for (const snapshot of snapshotsOn(session, step.over)) {
    const { info } = snapshot;
    // In place: the order is that of their making.
    session.snapshots.set(info.name, { ...snapshot, info: { ...info, generation: step.generation } });
    if (info.name === origin.snapshot.name) break;
  }
  head.receivedBase = old.receivedBase;
  old.receivedBase = undefined;
  head.origin = old.origin;
  old.origin = origin;
}
