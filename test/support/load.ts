import { randomUUID } from "node:crypto";
import { type Json, Refusal, type TestHost } from "./host.ts";
import type { SeenSession } from "./host-calls.ts";
import { pick } from "./random.ts";

/** What a host has acknowledged, and what it may have done without saying so. */
export interface Ledger {
  /** Sessions that were made and that nobody has tried to destroy, with the snapshots that nobody has tried to delete. */
  readonly kept: ReadonlyMap<string, ReadonlyMap<string, Sealed>>;
  /** Sessions whose destroy was acknowledged. */
  readonly destroyed: ReadonlySet<string>;
  /** Sessions that may or may not be: their create, fork or destroy was cut off. */
  readonly unsure: ReadonlySet<string>;
}

export interface Sealed {
  /** 0 where it is not a turn. */
  readonly turnNumber: number;
  /** What the file `/workspace/state` held. */
  readonly content: string;
}

/** Random work on a host: sessions that are made, forked, written to, sealed, rolled back, paused and destroyed. */
export interface Load {
  readonly ledger: Ledger;
  /** Works in several lanes, each until something is not answered, then returns. */
  run(): Promise<void>;
  /** How many calls were answered. */
  readonly answered: number;
  /** What the storage did not answer in time. */
  readonly unanswered: readonly string[];
}

interface Lane {
  readonly prefix: string;
  readonly random: () => number;
}

/** More than this many and a lane destroys before it makes another. */
const MOST_PER_LANE = 4;

export function createLoad(host: TestHost, lanes: readonly Lane[]): Load {
  const kept = new Map<string, Map<string, Sealed>>();
  const destroyed = new Set<string>();
  const unsure = new Set<string>();
  /** The content of each session's file; undefined where a write was cut off. */
  const contents = new Map<string, string | undefined>();
  const refusals: string[] = [];
  let answered = 0;
  let serial = 0;

  /** Undefined where the host died under the call; any other refusal is an answer of no effect. */
  const ask = async (method: string, body: Json): Promise<Json | "refused" | undefined> => {
    try {
      const answer = await host.attempt(method, body);
      if (answer !== undefined) answered += 1;
      return answer;
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      refusals.push(thrown.message);
      // A storage that did not answer may have done it all the same.
      return thrown.reason === "STORAGE_UNAVAILABLE" ? undefined : "refused";
    }
  };

  const make = async ({ prefix }: Lane): Promise<boolean> => {
    serial += 1;
    const sessionId = `${prefix}-${serial}`;
    unsure.add(sessionId);
    const made = await ask("SessionService/CreateSession", { sessionId, idempotencyKey: sessionId });
    if (made === undefined) return false;
    unsure.delete(sessionId);
    if (made !== "refused") {
      kept.set(sessionId, new Map());
      contents.set(sessionId, "");
    }
    return true;
  };

  const write = async (sessionId: string): Promise<boolean> => {
    serial += 1;
    const content = `step ${serial}`;
    contents.set(sessionId, undefined);
    const params = { cmd: `echo ${content} > /workspace/state` };
    const call = { sessionId, toolCallId: randomUUID(), toolName: "bash", params };
    const ran = await ask("ToolService/ExecuteTool", call);
    if (ran !== undefined && ran !== "refused") contents.set(sessionId, content);
    return ran !== undefined;
  };

  const seal = async (sessionId: string, kind: "turn" | "named"): Promise<boolean> => {
    const content = contents.get(sessionId);
    serial += 1;
    const sealed =
      kind === "turn"
        ? await ask("SnapshotService/TurnComplete", { sessionId, turnKey: `t${serial}` })
        : await ask("SnapshotService/CreateSnapshot", { sessionId, name: `n${serial}`, idempotencyKey: `n${serial}` });
    if (sealed === undefined || sealed === "refused") return sealed !== undefined;
    const snapshotId = String(sealed["snapshotId"] ?? (sealed["snapshot"] as Json)["snapshotId"]);
    if (content !== undefined && sealed["unchanged"] !== true)
      kept.get(sessionId)?.set(snapshotId, { turnNumber: Number(sealed["turnNumber"] ?? 0), content });
    return true;
  };

  const rollBack = async (sessionId: string, { random }: Lane): Promise<boolean> => {
    const target = pick(random, [...(kept.get(sessionId) ?? [])]);
    if (target === undefined) return true;
    contents.set(sessionId, undefined);
    const done = await ask("SnapshotService/RollbackSession", { sessionId, snapshotId: target[0] });
    if (done !== undefined && done !== "refused") contents.set(sessionId, target[1].content);
    return done !== undefined;
  };

  const remove = async (sessionId: string, { random }: Lane): Promise<boolean> => {
    const target = pick(random, [...(kept.get(sessionId)?.keys() ?? [])]);
    if (target === undefined) return true;
    kept.get(sessionId)?.delete(target);
    return (await ask("SnapshotService/DeleteSnapshot", { sessionId, snapshotId: target })) !== undefined;
  };

  const fork = async (sessionId: string, { prefix }: Lane): Promise<boolean> => {
    serial += 1;
    const childSessionIds = [`${prefix}-${serial}a`, `${prefix}-${serial}b`];
    for (const child of childSessionIds) unsure.add(child);
    const body = { sessionId, count: 2, childSessionIds, idempotencyKey: `f${serial}` };
    const forked = await ask("SessionService/ForkSession", body);
    if (forked === undefined) return false;
    for (const child of childSessionIds) unsure.delete(child);
    if (forked === "refused") return true;
    for (const { session } of forked["results"] as readonly { readonly session?: SeenSession }[]) {
      if (session === undefined) continue;
      kept.set(session.sessionId, new Map());
      contents.set(session.sessionId, contents.get(sessionId));
    }
    return true;
  };

  const pause = async (sessionId: string): Promise<boolean> => {
    if ((await ask("SessionService/PauseSession", { sessionId })) === undefined) return false;
    return (await ask("SessionService/ResumeSession", { sessionId })) !== undefined;
  };

  const destroy = async (sessionId: string): Promise<boolean> => {
    kept.delete(sessionId);
    unsure.add(sessionId);
    if ((await ask("SessionService/DestroySession", { sessionId })) === undefined) return false;
    unsure.delete(sessionId);
    destroyed.add(sessionId);
    return true;
  };

  /** One step; false where the host was gone. */
  const step = async (lane: Lane): Promise<boolean> => {
    const own = [...kept.keys()].filter((id) => id.startsWith(`${lane.prefix}-`));
    const sessionId = pick(lane.random, own);
    if (sessionId === undefined) return await make(lane);
    const chance = lane.random();
    if (own.length > MOST_PER_LANE) return await destroy(sessionId);
    if (chance < 0.55) return (await write(sessionId)) && (await seal(sessionId, "turn"));
    if (chance < 0.62) return await seal(sessionId, "named");
    if (chance < 0.74) return await rollBack(sessionId, lane);
    if (chance < 0.8) return await remove(sessionId, lane);
    if (chance < 0.88) return await fork(sessionId, lane);
    if (chance < 0.93) return await pause(sessionId);
    if (chance < 0.97) return await make(lane);
    return await destroy(sessionId);
  };

  const work = async (lane: Lane): Promise<void> => {
    while (await step(lane));
  };

  return {
    ledger: { kept, destroyed, unsure },
    get answered() {
      return answered;
    },
    get unanswered() {
      return refusals.filter((refusal) => refusal.includes("STORAGE_UNAVAILABLE"));
    },
    run: async () => {
      await Promise.all(lanes.map((lane) => work(lane)));
      // Before the kill each session was active: a refusal would hide what is wrong.
      const odd = refusals.filter((refusal) => !/SNAPSHOT_IN_USE|SESSION_PAUSED|STORAGE_UNAVAILABLE/.test(refusal));
      if (odd.length > 0) throw new Error(`refused: ${odd.join("; ")}`);
    },
  };
}
