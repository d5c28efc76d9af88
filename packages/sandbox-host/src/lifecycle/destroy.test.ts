import { expect, it } from "@jest/globals";
import { createDestroySession } from "./destroy.ts";
import { createRig } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";

it("answers a second destroy also where the session was forgotten in between, and keeps its receipt", async () => {
  await using rig = await createRig();
  const session = await rig.add();
  const removed: Session[] = [];
  const removals = {
    remove: (one: Session) => void removed.push(one),
    pending: () => [],
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const destroySession = createDestroySession({ ...rig, removals, reach: () => Promise.resolve() });
  await destroySession(session);
  await rig.records.call("deleteSession", session.row.token);
  const receipt = { scope: "s", key: "k", payloadHash: "h", result: "null", atMs: 1 };
  await destroySession(session, receipt);
  expect(removed).toEqual([session]);
  expect(await rig.records.call("findReceipt", { scope: "s", key: "k" })).toMatchObject({ payloadHash: "h" });
});
