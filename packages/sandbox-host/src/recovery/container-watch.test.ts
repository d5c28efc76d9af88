import { describe, expect, it } from "@jest/globals";
import { aroundMethods } from "@turnbox/core";
import { CALL, createRig, type Rig, until } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import { watchContainers } from "./container-watch.ts";

const INTERVAL_MS = 500;

/** Starts the watch; disposing ends it and waits for its end. */
function startWatch(rig: Rig): AsyncDisposable {
  const stop = new AbortController();
  const work = watchContainers(rig, { intervalMs: INTERVAL_MS, signal: stop.signal });
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await work;
    },
  };
}

async function booted(rig: Rig, more: Parameters<Rig["add"]>[0] = {}): Promise<[Session, string]> {
  const session = await rig.add(more);
  return [session, await rig.containers.ensure(session, CALL)];
}

describe("watchContainers", () => {
  it.each(["lost", "oom"] as const)(
    "begins a new generation within a second, before the next call, if a sandbox dies (%s)",
    async (cause) => {
      await using rig = await createRig();
      const [session, container] = await booted(rig);
      const [neighbour, itsContainer] = await booted(rig);
      await using _watch = startWatch(rig);
      using listener = rig.events.listen();
      rig.runtime.crash(container, cause);
      await rig.clock.advance(1000);
      expect(await listener.next(CALL.signal)).toMatchObject({ kind: "changed", session });
      expect(session.row).toMatchObject({ container: null, generation: 2 });
      expect(await rig.runtime.list(CALL)).toEqual([itsContainer]);
      expect(neighbour.row.generation).toBe(1);
      expect(rig.logged).toContainEqual(expect.objectContaining({ msg: "sandbox died", container }));
    },
  );

  it("raises the generation once, also where the next call is faster", async () => {
    await using rig = await createRig();
    const [session, container] = await booted(rig);
    await using _watch = startWatch(rig);
    rig.runtime.crash(container, "lost");
    rig.containers.suspect(session);
    const [next] = await Promise.all([rig.containers.ensure(session, CALL), rig.clock.advance(1000)]);
    await rig.clock.advance(1000);
    expect(next).not.toBe(container);
    expect(session.row).toMatchObject({ container: next, generation: 2 });
    expect(await rig.runtime.liveness(next, CALL)).toBe("running");
  });

  it("lets the next call boot another on the same files without a further generation", async () => {
    await using rig = await createRig();
    const [session, container] = await booted(rig);
    await using _watch = startWatch(rig);
    rig.runtime.crash(container, "lost");
    await rig.clock.advance(INTERVAL_MS);
    await until(() => session.row.container === null);
    const next = await rig.containers.ensure(session, CALL);
    expect(next).not.toBe(container);
    expect(session.row).toMatchObject({ container: next, generation: 2 });
  });

  it("leaves a session alone while an operation holds it, and looks again after that", async () => {
    await using rig = await createRig();
    const [session, container] = await booted(rig);
    await using _watch = startWatch(rig);
    {
      using _closed = session.gate.close("ROLLBACK_IN_PROGRESS");
      rig.runtime.crash(container, "lost");
      await rig.clock.advance(2000);
      expect(session.row).toMatchObject({ container, generation: 1 });
    }
    await rig.clock.advance(1000);
    await until(() => session.row.generation === 2);
  });

  it("notices the death of a paused sandbox, and takes no removed or failed session up", async () => {
    await using rig = await createRig();
    const [paused, container] = await booted(rig);
    await paused.commit((row) => ({ ...row, phase: { kind: "paused", sinceMs: 1, cause: "request" } }));
    const [failed, itsContainer] = await booted(rig);
    await failed.commit((row) => ({ ...row, phase: { kind: "failed", message: "by the test" } }));
    await using _watch = startWatch(rig);
    for (const id of [container, itsContainer]) rig.runtime.crash(id, "lost");
    await rig.clock.advance(1000);
    await until(() => paused.row.generation === 2);
    expect(paused.row).toMatchObject({ container: null, phase: { kind: "paused" } });
    expect(failed.row).toMatchObject({ container: itsContainer, generation: 1 });
  });

  it("logs what it could not remove, and tries again", async () => {
    await using rig = await createRig();
    const [session, container] = await booted(rig);
    let failures = 2;
    const containers = aroundMethods(rig.containers, ["lose"], async (_method, work) => {
      if (failures-- > 0) throw new Error("busy");
      return await work();
    });
    const stopWatch = new AbortController();
    const work = watchContainers({ ...rig, containers }, { intervalMs: INTERVAL_MS, signal: stopWatch.signal });
    rig.runtime.crash(container, "lost");
    await until(async () => {
      await rig.clock.advance(INTERVAL_MS);
      return session.row.generation === 2;
    });
    stopWatch.abort();
    await work;
    expect(rig.logged.filter(({ msg }) => msg === "dead sandbox not removed")).toHaveLength(2);
  });
});
