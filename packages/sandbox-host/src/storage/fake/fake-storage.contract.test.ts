import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { storageSuite } from "../storage.suite.ts";
import { createFakeStorage, type FakeStorage } from "./fake-storage.ts";

const call = { signal: new AbortController().signal };

async function createHarness(): Promise<{ storage: FakeStorage; restarted: () => FakeStorage } & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-fake-"));
  const storage = createFakeStorage({ directory, streamPatienceMs: 1000 });
  await storage.open(call);
  return {
    storage,
    restarted: () => storage.restarted(),
    [Symbol.asyncDispose]: async () => {
      await rm(directory, { recursive: true, force: true });
    },
  };
}

storageSuite("fake", createHarness, { quota: "remembered", mounts: "pretended", streams: "offered" });

describe("createFakeStorage", () => {
  const base = { name: "mini", digest: "ab" };
  const spec = { token: "t1", origin: { kind: "base", base }, marks: {} } as const;
  const full = new SandboxError("POOL_FULL", "full");

  it("fails the next call as asked, before or after the effect, and then serves again", async () => {
    await using harness = await createHarness();
    const { storage } = harness;
    await storage.createBase(base, () => Promise.resolve(), call);
    storage.faults.failNext("createSession", { error: full });
    await expect(storage.createSession(spec, call)).rejects.toBe(full);
    expect(await storage.inventory(call)).toEqual([]);
    storage.faults.failNext("createSession", { error: full, when: "after" });
    await expect(storage.createSession(spec, call)).rejects.toBe(full);
    expect(await storage.inventory(call)).toHaveLength(1);
    expect((await storage.createSession(spec, call)).generation).toBe(1);
  });

  it("holds the next call until it is released", async () => {
    await using harness = await createHarness();
    const { storage } = harness;
    await storage.createBase(base, () => Promise.resolve(), call);
    const hold = storage.faults.holdNext("createSession");
    const creating = storage.createSession(spec, call);
    await hold.entered;
    hold.release();
    expect((await creating).token).toBe("t1");
  });

  it("returns the status that a test has set", async () => {
    await using harness = await createHarness();
    const { storage } = harness;
    const status = { state: "degraded", detail: "DEGRADED", sizeBytes: 10, usedBytes: 9, availableBytes: 1 } as const;
    storage.setStatus(status);
    expect(await storage.status(call)).toEqual(status);
    storage.setStatus(undefined);
    expect((await storage.status(call)).state).toBe("online");
  });

  it("reports heads that lost their mounts once, at the next open, also after a restart", async () => {
    await using harness = await createHarness();
    const { storage } = harness;
    const lost = { token: "t1", generation: 3 };
    storage.loseMounts([lost]);
    expect((await storage.status(call)).state).toBe("unavailable");
    expect(await storage.open(call)).toEqual({ remounted: [lost] });
    expect((await storage.status(call)).state).toBe("online");
    expect(await storage.open(call)).toEqual({ remounted: [] });
    storage.loseMounts([lost]);
    expect(await storage.restarted().open(call)).toEqual({ remounted: [lost] });
  });
});
