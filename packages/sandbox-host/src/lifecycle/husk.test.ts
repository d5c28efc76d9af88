import { expect, it } from "@jest/globals";
import { CALL, createRig } from "../session/rig.suite.ts";
import { createHusks } from "./husk.ts";

it("looks once for all who ask while it looks, and again for those who asked after it had begun", async () => {
  await using rig = await createRig();
  const { row } = await rig.add();
  const gates = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  let looks = 0;
  const storage: typeof rig.storage = {
    ...rig.storage,
    destroySession: async (token, call) => {
      const look = looks++;
      await gates[look]?.promise;
      if (look === 0) throw new Error("something still depends on it");
      await rig.storage.destroySession(token, call);
    },
  };
  const husks = createHusks({ ...rig, storage });
  husks.add({ token: row.token, sessionId: row.id, tenant: row.tenant, sinceMs: 1 });
  const first = husks.collect(CALL);
  while (looks === 0) await new Promise((resolve) => void setImmediate(resolve));
  const others = Array.from({ length: 50 }, () => husks.collect(CALL));
  gates[0]?.resolve(undefined);
  await first;
  expect(husks.all()).toHaveLength(1);
  gates[1]?.resolve(undefined);
  await Promise.all(others);
  expect(husks.all()).toEqual([]);
  expect(looks).toBe(2);
});
