import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { CALL, createRig } from "./rig.suite.ts";
import { readSessionStats } from "./stats.ts";

describe("readSessionStats", () => {
  it("has nothing running without a container, and the real size of the files (D5)", async () => {
    await using rig = await createRig();
    const session = await rig.add({ limits: { memoryBytes: 1 << 30 } });
    const { path } = await rig.storage.mountHead(session.head, CALL);
    await writeFile(join(path, "b.txt"), "x".repeat(1000));
    const stats = await readSessionStats(rig, session, CALL);
    expect(stats).toMatchObject({ cpuMs: 0, memoryBytes: 0, processes: 0, memoryLimitBytes: 1 << 30 });
    expect(stats.spaceUsedBytes).toBeGreaterThanOrEqual(1000);
  });

  it("asks a container that is there, also where it has died", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const container = await rig.containers.ensure(session, CALL);
    expect((await readSessionStats(rig, session, CALL)).memoryBytes).toBeGreaterThan(0);
    rig.runtime.crash(container, "lost");
    expect(await readSessionStats(rig, session, CALL)).toMatchObject({ memoryBytes: 0, processes: 0 });
  });

  it("has no size where nothing is left, and passes on what is wrong with the storage", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const broken = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");
    rig.storage.faults.failNext("usedBytes", { error: broken });
    await expect(readSessionStats(rig, session, CALL)).rejects.toBe(broken);
    await rig.storage.destroySession(session.row.token, CALL);
    expect((await readSessionStats(rig, session, CALL)).spaceUsedBytes).toBe(0);
  });
});
