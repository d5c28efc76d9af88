import { describe, expect, it } from "@jest/globals";
import type { Principal } from "@turnbox/core";
import type { SessionEvents } from "./events.ts";
import { createRig, type Rig } from "./rig.suite.ts";
import { KEEPALIVE_MS, type Watched, watch } from "./watch.ts";

const CALLER: Principal = { kind: "home", tenant: "default", verbs: [] };
const SANDBOX_USER: Principal = { ...CALLER, kind: "scoped" };

/** Reads a watch; a reader that waits does not hold up the test. */
function follow(rig: Rig, labels: Readonly<Record<string, string>> = {}, caller: Principal = CALLER) {
  const stop = new AbortController();
  const stream = watch(rig, { caller, labels }, { signal: stop.signal });
  const next = async (): Promise<string> => describeEvent(await stream.next());
  return { stop, stream, next };
}

function describeEvent({ value, done }: IteratorResult<Watched, unknown>): string {
  if (done === true) return "end";
  return "session" in value ? `${value.kind} ${value.session.row.id}` : value.kind;
}

describe("watch", () => {
  it("begins with what exists and goes on with what happens, also while the beginning is read", async () => {
    await using rig = await createRig();
    await rig.add({ id: "a" });
    const b = await rig.add({ id: "b" });
    const { next, stop } = follow(rig);
    expect(await next()).toBe("existing a");
    rig.registry.remove(b);
    rig.events.publish("created", await rig.add({ id: "c" }));
    expect(await next()).toBe("existing b");
    expect(await next()).toBe("destroyed b");
    expect(await next()).toBe("created c");
    const waiting = next();
    stop.abort();
    expect(await waiting).toBe("end");
  });

  it("yields changes of state and generation, and snapshots", async () => {
    await using rig = await createRig();
    const session = await rig.add({ id: "a" });
    const { next, stop } = follow(rig);
    await next();
    await session.commit((row) => ({ ...row, phase: { kind: "paused", sinceMs: 1, cause: "request" } }));
    await session.commit((row) => ({ ...row, labels: { quiet: "yes" } }));
    await rig.seal(session, "x1");
    expect([await next(), await next()]).toEqual(["changed a", "sealed a"]);
    stop.abort();
  });

  it("yields nothing of other tenants, nor of other labels", async () => {
    await using rig = await createRig();
    await rig.add({ id: "theirs", tenant: "other", labels: { team: "red" } });
    await rig.add({ id: "plain" });
    await rig.add({ id: "red", labels: { team: "red", more: "x" } });
    const { next, stop } = follow(rig, { team: "red" }, SANDBOX_USER);
    expect(await next()).toBe("existing red");
    const waiting = next();
    rig.events.publish("created", await rig.add({ id: "theirs2", tenant: "other", labels: { team: "red" } }));
    rig.events.publish("created", await rig.add({ id: "blue", labels: { team: "blue" } }));
    rig.events.publish("created", await rig.add({ id: "red2", labels: { team: "red" } }));
    expect(await waiting).toBe("created red2");
    stop.abort();
  });

  it("says that it lives after each silence, and not before", async () => {
    await using rig = await createRig();
    const session = await rig.add({ id: "a" });
    const { next, stop } = follow(rig);
    await next();
    const first = next();
    await rig.clock.advance(KEEPALIVE_MS - 1);
    rig.events.publish("changed", session);
    expect(await first).toBe("changed a");
    const second = next();
    await rig.clock.advance(KEEPALIVE_MS);
    expect(await second).toBe("keepalive");
    const third = next();
    await rig.clock.advance(KEEPALIVE_MS);
    expect(await third).toBe("keepalive");
    stop.abort();
    expect(await next()).toBe("end");
    expect(rig.clock.sleeping).toBe(0);
  });

  it("shows a slow reader that it missed something, and goes on", async () => {
    await using rig = await createRig();
    const session = await rig.add({ id: "a" });
    const { next, stop } = follow(rig);
    await next();
    for (let count = 0; count < 1025; count += 1) rig.events.publish("changed", session);
    expect(await next()).toBe("overflow");
    rig.events.publish("sealed", session);
    expect(await next()).toBe("sealed a");
    stop.abort();
  });

  it("stops listening when a reader vanishes that never comes back", async () => {
    await using rig = await createRig();
    await rig.add({ id: "a" });
    let listening = 0;
    const events: SessionEvents = {
      ...rig.events,
      listen: () => {
        const listener = rig.events.listen();
        listening += 1;
        return {
          next: listener.next,
          [Symbol.dispose]: () => {
            listening -= 1;
            listener[Symbol.dispose]();
          },
        };
      },
    };
    const { next, stop } = follow({ ...rig, events });
    await next();
    expect(listening).toBe(1);
    stop.abort();
    expect(listening).toBe(0);
    expect(await next()).toBe("end");
  });
});
