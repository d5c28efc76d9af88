import { describe, expect, it } from "@jest/globals";
import { createRig, type Rig } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import type { Marks } from "../storage/storage.ts";
import { DeferredMarks } from "./deferred-marks.ts";

interface Desk extends AsyncDisposable {
  readonly rig: Rig;
  readonly marks: DeferredMarks;
  readonly written: (readonly [string, Marks])[];
  /** A session that stood ready under another name. */
  hand(): Promise<Session>;
}

async function createDesk(): Promise<Desk> {
  const rig = await createRig();
  const written: (readonly [string, Marks])[] = [];
  let busy = 0;
  const markSession = async (token: string, marks: Marks): Promise<void> => {
    if (busy > 0) throw new Error("two at a time");
    busy += 1;
    await Promise.resolve();
    busy -= 1;
    written.push([token, marks]);
  };
  const marks = new DeferredMarks({ ...rig, storage: { markSession } });
  const hand = async (): Promise<Session> => {
    const session = await rig.add();
    const { row } = session;
    marks.add(row, { ...row, id: `${row.id}-before`, tenant: "" });
    return session;
  };
  return { rig, marks, written, hand, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

describe("the marks of a session that was warm before", () => {
  it("is what is new, a moment later, of one session after the other", async () => {
    await using desk = await createDesk();
    const sessions = [await desk.hand(), await desk.hand()];
    await desk.rig.clock.advance(900);
    expect(desk.written).toEqual([]);
    await desk.rig.clock.advance(200);
    await desk.marks[Symbol.asyncDispose]();
    expect(desk.written).toEqual(sessions.map(({ row: { token, id, tenant } }) => [token, { session_id: id, tenant }]));
  });

  it("is written at once when the service stops, and not at all of sessions that are gone", async () => {
    await using desk = await createDesk();
    const [gone, stays] = [await desk.hand(), await desk.hand()];
    desk.rig.registry.remove(gone);
    await desk.marks[Symbol.asyncDispose]();
    expect(desk.written.map(([token]) => token)).toEqual([stays.row.token]);
  });

  it("is not written after a crash", async () => {
    await using desk = await createDesk();
    await desk.hand();
    desk.marks.abandon();
    await desk.rig.clock.advance(5000);
    await desk.marks[Symbol.asyncDispose]();
    expect(desk.written).toEqual([]);
  });
});
