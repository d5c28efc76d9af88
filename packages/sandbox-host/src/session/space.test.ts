import { describe, expect, it } from "@jest/globals";
import { createRig } from "./rig.suite.ts";
import { createSpace } from "./space.ts";

describe("the space that a session takes", () => {
  it("is asked for once while nothing happens in the session, and again when it was used or a while has passed", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    let asked = 0;
    const storage = {
      usedBytes: async () => {
        await Promise.resolve();
        asked += 1;
        return asked * 1000;
      },
    };
    const space = createSpace({ ...rig, storage });
    rig.activity.touch(session);
    await rig.clock.advance(1);
    expect([await space.of(session), await space.of(session)]).toEqual([1000, 1000]);
    await rig.clock.advance(100);
    rig.activity.touch(session);
    await rig.clock.advance(1);
    expect([await space.of(session), await space.of(session)]).toEqual([2000, 2000]);
    await rig.clock.advance(5001);
    expect(await space.of(session)).toBe(3000);
  });

  it("is nothing, unasked, for a session that was made a moment ago, until it is used", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const space = createSpace({ ...rig, storage: { usedBytes: () => Promise.resolve(1000) } });
    space.begin(session);
    await rig.clock.advance(10);
    expect(await space.of(session)).toBe(0);
    rig.activity.touch(session);
    await rig.clock.advance(1);
    expect(await space.of(session)).toBe(1000);
    space.begin(session);
    await rig.clock.advance(5001);
    expect(await space.of(session)).toBe(1000);
  });

  it("is asked for each time while a call runs", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const call = session.gate.enter();
    let asked = 0;
    const usedBytes = () => Promise.resolve((asked += 1));
    const space = createSpace({ ...rig, storage: { usedBytes } });
    expect(await space.of(session)).toBe(1);
    await rig.clock.advance(10);
    expect(await space.of(session)).toBe(2);
    call[Symbol.dispose]();
    await rig.clock.advance(10);
    expect([await space.of(session), await space.of(session)]).toEqual([3, 3]);
  });

  it("of the last seconds is asked for once in these, whatever happens in the session", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    using _call = session.gate.enter();
    let asked = 0;
    const usedBytes = () => Promise.resolve((asked += 1));
    const space = createSpace({ ...rig, storage: { usedBytes } });
    expect(await space.recent(session)).toBe(1);
    await rig.clock.advance(5000);
    expect(await space.recent(session)).toBe(1);
    await rig.clock.advance(1);
    expect(await space.recent(session)).toBe(2);
  });

  it("is asked for again after a look at a session that was being sealed", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    let asked = 0;
    const usedBytes = () => Promise.resolve((asked += 1));
    const space = createSpace({ ...rig, storage: { usedBytes } });
    await rig.clock.advance(100);
    expect([await space.of(session), await space.of(session)]).toEqual([1, 1]);
    expect([await space.recent(session), await space.of(session)]).toEqual([1, 2]);
  });

  it("shows as nothing where it cannot be read", async () => {
    await using rig = await createRig();
    const usedBytes = () => Promise.reject(new Error("no"));
    expect(await createSpace({ ...rig, storage: { usedBytes } }).of(await rig.add())).toBe(0);
  });
});
