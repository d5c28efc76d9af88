import { describe, expect, it } from "@jest/globals";
import { HOME, SIGNAL, startTestHost } from "../compose.suite.ts";
import type { Removals } from "../lifecycle/remove.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SettleIntent } from "../session/intent.ts";
import { createRegistry, type Registry } from "../session/registry.ts";
import { CALL, createRig, type Rig, snapshotOf, until } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import { recoverSessions } from "./recover.ts";

const BOOT = "this-boot";
const nothing: SettleIntent = () => Promise.resolve();

const CREATING = { phase: { kind: "creating" } } as const;

/** A session that stands ready, booted. */
async function standing(rig: Rig, more: { readonly readyIn?: string } = { readyIn: BOOT }): Promise<Session> {
  const container = rig.containers.newId();
  const session = await rig.add({ phase: { kind: "creating", ...more }, container });
  await rig.containers.boot(session, { head: session.head, id: container }, CALL);
  return session;
}

/** What a restart does on the records and files of the rig, with a registry of its own. */
async function restart(
  rig: Rig,
  more: {
    readonly runtime?: Runtime;
    readonly settle?: SettleIntent;
    /** Called when sessions are served, before anything of them was looked at. */
    readonly onServed?: (registry: Registry) => void;
  } = {},
) {
  const registry = createRegistry({ maxSessions: 0, events: rig.events });
  const removed: Session[] = [];
  const removals: Pick<Removals, "remove"> = { remove: (session) => void removed.push(session) };
  const recovery = await recoverSessions(
    { ...rig, settle: nothing, bootId: BOOT, composed: Promise.resolve(), ...more, registry, removals },
    CALL,
  );
  more.onServed?.(registry);
  return { ...(await recovery.done), ready: recovery.ready, registry, removed };
}

describe("recoverSessions", () => {
  it("leaves warm sessions of this boot whose files are there to the pool, and removes other unfinished ones", async () => {
    await using rig = await createRig();
    const [ready, lost] = [await standing(rig), await standing(rig)];
    const others = [await standing(rig, { readyIn: "another-boot" }), await standing(rig, {}), await rig.add(CREATING)];
    await rig.records.call("noteLostHeads", [lost.head]);
    const { registry, removed, quarantined, ready: left } = await restart(rig);
    expect(left.map(({ token }) => token)).toEqual([ready.row.token]);
    expect(removed.map(({ row }) => row.id)).toEqual([lost, ...others].map(({ row }) => row.id));
    expect(registry.find(ready.row.id)).toBeUndefined();
    expect(quarantined).toEqual([]);
    expect(await rig.runtime.list(CALL)).toContain(ready.row.container);
  });

  it("quarantines files without a record, and knows husks for what they are", async () => {
    await using rig = await createRig();
    const [husk, stray, kept] = [await rig.add(), await rig.add(), await rig.add()];
    const { id: sessionId, token, tenant } = husk.row;
    await rig.records.call("becomeHusk", { token, sessionId, tenant, sinceMs: 1 });
    await rig.records.call("deleteSession", stray.row.token);
    const { quarantined, registry } = await restart(rig);
    expect(quarantined).toEqual([stray.row.token]);
    expect(registry.all().map(({ row }) => row.id)).toEqual([kept.row.id]);
    expect(await rig.storage.inventory(CALL)).toHaveLength(3);
  });

  it("names snapshots that are gone, keeps their records, and brings the session back", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    for (const id of ["x1", "x2"]) await rig.seal(session, id);
    await rig.storage.destroySnapshot({ token: session.row.token, name: "nx1" }, CALL);
    const { registry } = await restart(rig);
    expect(registry.find(session.row.id)?.row.phase.kind).toBe("active");
    expect(rig.logged).toContainEqual(expect.objectContaining({ level: "error", missing: ["nx1"] }));
    expect(await rig.records.call("listSnapshots", session.row.token)).toHaveLength(2);
  });

  it("does not miss a snapshot whose removal was cut off and is ended now", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    await rig.seal(session, "x1");
    const { token } = session.row;
    await rig.storage.destroySnapshot({ token, name: "nx1" }, CALL);
    await rig.records.call("beginIntent", { kind: "drop", token, snapshotId: "x1", name: "nx1", receipt: null });
    await restart(rig, {
      settle: (again) => again.commit((row) => row, { dropped: "x1", intent: "end" }),
    });
    expect(rig.logged.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("marks a session as failed whose unfinished operation cannot be ended, and remembers it", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const { token } = session.row;
    const snapshot = snapshotOf("x1", session.row);
    await rig.records.call("beginIntent", { kind: "seal", token, snapshot, receipt: null });
    const { registry } = await restart(rig, { settle: () => Promise.reject(new Error("not now")) });
    const again = registry.find(session.row.id);
    expect(again?.row.phase).toEqual({ kind: "failed", message: "not now" });
    expect(again?.leftover).toMatchObject({ kind: "seal" });
  });

  it("takes up what was being made or removed as removals", async () => {
    await using rig = await createRig();
    await rig.add({ phase: { kind: "creating" } });
    await rig.add({ phase: { kind: "destroying", sinceMs: 1 } });
    const { removed } = await restart(rig);
    expect(removed.map(({ row }) => row.phase.kind)).toEqual(["destroying", "destroying"]);
  });

  it("lets nothing run in a container before what an earlier service ran there has been ended", async () => {
    await using rig = await createRig();
    const { row } = await rig.add();
    const ensured = await rig.containers.ensure(rig.registry.find(row.id)!, CALL);
    const order: string[] = [];
    let finding: Promise<unknown> = Promise.resolve();
    const runtime: Runtime = {
      ...rig.runtime,
      quiesce: async () => {
        // Long enough for a tool to get ahead, if it did not wait.
        for (let round = 0; round < 50; round += 1) await new Promise((resolve) => void setImmediate(resolve));
        order.push("ended");
      },
    };
    await restart(rig, {
      runtime,
      onServed: (registry) => {
        const session = registry.find(row.id)!;
        finding = rig.containers.ensure(session, CALL).then((id) => order.push(id));
      },
    });
    await finding;
    expect(order).toEqual(["ended", ensured]);
  });

  it("looks into containers, a few at a time, and asks nothing about sessions without one", async () => {
    await using rig = await createRig();
    for (let count = 0; count < 20; count += 1) await rig.add({ container: `c${count}` });
    for (let count = 0; count < 180; count += 1) await rig.add();
    let [now, most, asked] = [0, 0, 0];
    const refuse = (): never => {
      throw new Error("not asked for");
    };
    const runtime: Runtime = {
      ...rig.runtime,
      quiesce: async () => {
        now += 1;
        asked += 1;
        most = Math.max(most, now);
        await new Promise((resolve) => void setImmediate(resolve));
        now -= 1;
      },
      liveness: refuse,
      exec: refuse,
      start: refuse,
    };
    const startedMs = performance.now();
    const { registry } = await restart(rig, { runtime });
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    expect(registry.size).toBe(200);
    expect({ asked, most }).toEqual({ asked: 20, most: 8 });
  });
});

describe("a restart", () => {
  it("destroys nothing: sessions, files and the running container are there, and the next call works (D6)", async () => {
    const before = await startTestHost();
    const session = await before.create({ labels: { a: "b" } });
    await before.bash(session, "write /workspace/a.txt kept");
    await before.host.completeTurn(
      session,
      { turnKey: "", outcome: "succeeded", expectedGeneration: undefined },
      { signal: SIGNAL },
    );
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row).toMatchObject({ labels: { a: "b" }, turnCounter: 1, generation: 1, phase: { kind: "active" } });
    expect((await after.bash(again, "cat /workspace/a.txt")).content).toBe("kept");
    expect(again.row).toMatchObject({ container: session.row.container, generation: 1 });
  });

  it("thaws what the stop froze before the first call, and boots nothing that is gone", async () => {
    const before = await startTestHost();
    const [frozen, gone] = [await before.create(), await before.create()];
    for (const session of [frozen, gone]) await before.bash(session, "echo boot");
    await before.runtime.pause(frozen.row.container ?? "", { signal: SIGNAL });
    before.runtime.crash(gone.row.container ?? "", "lost");
    await using after = await before.restart();
    const liveness = (id: string | null) => after.runtime.liveness(id ?? "", { signal: SIGNAL });
    await until(async () => (await liveness(frozen.row.container)) === "running");
    expect(after.host.registry.get(gone.row.id, HOME).row).toMatchObject({
      container: gone.row.container,
      generation: 1,
    });
    expect(await liveness(gone.row.container)).toBe("gone");
  });

  it("undoes a create that was cut off", async () => {
    const before = await startTestHost();
    const hold = before.storage.faults.holdNext("createSession");
    const cut = before.create().catch(() => undefined);
    await hold.entered;
    const restarting = before.restart();
    hold.release();
    await using after = await restarting;
    await cut;
    await until(() => after.host.registry.size === 0);
    expect(await after.storage.inventory({ signal: SIGNAL })).toEqual([]);
  });

  it("ends containers that no session owns, and leaves files without a record alone", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.runtime.start(
      { id: "stray00000000000", rootPath: "/", hostname: "x", limits: {} },
      { signal: SIGNAL },
    );
    await before.host.records.call("deleteSession", session.row.token);
    await using after = await before.restart();
    expect(await after.runtime.list({ signal: SIGNAL })).toEqual([]);
    expect(await after.storage.inventory({ signal: SIGNAL })).toHaveLength(1);
  });
});

describe("a session that cannot be brought back", () => {
  it("is marked as failed and holds up no other", async () => {
    const before = await startTestHost();
    const [lost, kept] = [await before.create(), await before.create()];
    await before.storage.destroySession(lost.row.token, { signal: SIGNAL });
    await using after = await before.restart();
    expect(after.host.registry.find(lost.row.id)?.row.phase).toMatchObject({ kind: "failed" });
    const again = after.host.registry.get(kept.row.id, HOME);
    expect((await after.bash(again, "echo serving")).content).toBe("serving\n");
    await after.host.destroySession(after.host.registry.get(lost.row.id, HOME));
    await until(() => after.host.registry.size === 1);
  });
});
