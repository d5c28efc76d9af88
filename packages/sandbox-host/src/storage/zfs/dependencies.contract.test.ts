import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { eventually } from "../suite/suite-fixture.suite.ts";
import { call, createNamedHome, DEADLINE_MS, use, zfs } from "./named-home.suite.ts";

describe("collectHeads", () => {
  it(
    "ends a head that a crash left between its promotion and its destruction",
    async () => {
      await using home = await createNamedHome();
      const { storage, head, pool } = home;
      await storage.seal(head, "s1", {}, call);
      const second = await home.cloneOf("s1", 2);
      await zfs("promote", `${pool}/agents/t1/g2`);
      expect(await storage.collectHeads(second, call)).toEqual([{ token: "t1", generation: 1 }]);
      expect(await storage.listSnapshots("t1", call)).toMatchObject([{ name: "s1", generation: 2 }]);
    },
    DEADLINE_MS,
  );

  it(
    "leaves a head that a process works in, and ends it the next time",
    async () => {
      await using home = await createNamedHome();
      const { storage, head } = home;
      await storage.seal(head, "s1", {}, call);
      const second = await home.cloneOf("s1", 2);
      {
        await using _user = await use(head.path);
        expect(await storage.collectHeads(second, call)).toEqual([]);
        expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
        const fork = { kind: "snapshot", snapshot: { token: "t1", name: "s1" } } as const;
        await storage.createSession({ token: "t2", origin: fork, marks: {} }, call);
        await expect(storage.shrinkSession("t1", call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      }
      await eventually(async () => {
        expect(await storage.collectHeads(second, call)).toEqual([{ token: "t1", generation: 1 }]);
      });
    },
    DEADLINE_MS,
  );
});
