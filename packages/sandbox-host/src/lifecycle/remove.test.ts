import { expect, it } from "@jest/globals";
import { createRig } from "../session/rig.suite.ts";
import { createHusks } from "./husk.ts";
import { Removals } from "./remove.ts";

it("removes a few sessions at a time, however many are destroyed at once, and all of them in the end", async () => {
  await using rig = await createRig();
  let [now, most] = [0, 0];
  const storage: typeof rig.storage = {
    ...rig.storage,
    destroySession: async (token, call) => {
      now += 1;
      most = Math.max(most, now);
      await rig.storage.destroySession(token, call);
      now -= 1;
    },
  };
  const husks = createHusks({ ...rig, storage });
  await using removals = new Removals({ ...rig, storage, husks, crashPoint: () => Promise.resolve() });
  const sessions = [];
  for (let count = 0; count < 40; count += 1) sessions.push(await rig.add());
  for (const session of sessions)
    await session.commit((row) => ({ ...row, phase: { kind: "destroying", sinceMs: 1 } }));
  for (const session of sessions) removals.remove(session);
  expect(removals.pending()).toHaveLength(40);
  while (removals.pending().length > 0) await new Promise((resolve) => void setImmediate(resolve));
  expect(most).toBe(4);
  expect(rig.registry.size).toBe(0);
});
