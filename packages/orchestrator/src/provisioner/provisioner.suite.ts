import { describe, expect, it } from "@jest/globals";
import type { MachineState, Provisioner } from "./provisioner.ts";

const CALL = { signal: new AbortController().signal };
const TAGS = { "fleet-id": "f1" };
const POLL_MS = 20;
const PATIENCE_MS = 15_000;

async function until(provisioner: Provisioner, instanceId: string, state: MachineState): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = (await provisioner.describe(instanceId, CALL)).state;
    if (found === state) return;
    if (performance.now() > giveUpAt) throw new Error(`${instanceId} is ${found} and not ${state}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Sees to it that `i-1` runs: it is launched if machines can be made, and is there from the start if not. */
async function obtain(provisioner: Provisioner): Promise<void> {
  if (provisioner.capabilities.launch === "supported") {
    await provisioner.launch({ instanceId: "i-1", tags: TAGS }, CALL);
  }
  await until(provisioner, "i-1", "running");
}

/**
 * The contract of `Provisioner`. `create` returns one that has no machines, or, if it can make none, with the
 * one machine `i-1` of the fleet `f1`; the suite disposes of it.
 */
export function provisionerSuite(name: string, create: () => Promise<Provisioner>): void {
  describe(`Provisioner: ${name}`, () => {
    it("has a machine that is described and listed under its id and tags", async () => {
      await using provisioner = await create();
      await obtain(provisioner);
      const described = await provisioner.describe("i-1", CALL);
      expect(described).toMatchObject({
        instanceId: "i-1",
        state: "running",
        tags: TAGS,
        image: provisioner.image,
        interruption: undefined,
      });
      expect(described.url).toMatch(/^https?:\/\//);
      expect(await provisioner.list({ tags: TAGS, states: [] }, CALL)).toEqual([described]);
    });

    it("makes one machine of two launches, one after another or at once, or says that it makes none", async () => {
      await using provisioner = await create();
      const spec = { instanceId: "i-1", tags: TAGS };
      if (provisioner.capabilities.launch === "unsupported") {
        await expect(provisioner.launch(spec, CALL)).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
      } else {
        const [first, second] = await Promise.all([provisioner.launch(spec, CALL), provisioner.launch(spec, CALL)]);
        const third = await provisioner.launch(spec, CALL);
        expect(second.launchedAtMs).toBe(first.launchedAtMs);
        expect(third.launchedAtMs).toBe(first.launchedAtMs);
      }
      expect(await provisioner.list({ tags: TAGS, states: [] }, CALL)).toHaveLength(1);
    });

    it("D33: lists by tags and states, and refuses a launch or a list without tags", async () => {
      await using provisioner = await create();
      await obtain(provisioner);
      expect(await provisioner.list({ tags: { "fleet-id": "f2" }, states: [] }, CALL)).toEqual([]);
      expect(await provisioner.list({ tags: TAGS, states: ["stopped"] }, CALL)).toEqual([]);
      expect(await provisioner.list({ tags: TAGS, states: ["running"] }, CALL)).toHaveLength(1);
      await expect(provisioner.list({ tags: {}, states: [] }, CALL)).rejects.toMatchObject({
        reason: "INVALID_ARGUMENT",
      });
      await expect(provisioner.launch({ instanceId: "i-2", tags: {} }, CALL)).rejects.toMatchObject({
        reason: "INVALID_ARGUMENT",
      });
    });

    it("refuses an id that could not be a part of a sandbox id", async () => {
      await using provisioner = await create();
      for (const instanceId of ["", "a:b", "../a", "-a", "x".repeat(64)]) {
        await expect(provisioner.launch({ instanceId, tags: TAGS }, CALL)).rejects.toMatchObject({
          reason: "INVALID_ARGUMENT",
        });
      }
    });

    it("terminates a machine for good, twice if asked, and one that never was, or says that it ends none", async () => {
      await using provisioner = await create();
      await obtain(provisioner);
      if (provisioner.capabilities.launch === "unsupported") {
        await expect(provisioner.terminate("i-1", CALL)).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
        expect(await provisioner.list({ tags: TAGS, states: [] }, CALL)).toHaveLength(1);
        return;
      }
      await provisioner.terminate("i-1", CALL);
      await provisioner.terminate("i-1", CALL);
      await until(provisioner, "i-1", "terminated");
      await provisioner.terminate("i-9", CALL);
      expect(await provisioner.list({ tags: TAGS, states: [] }, CALL)).toEqual([]);
      expect(await provisioner.list({ tags: TAGS, states: ["terminated"] }, CALL)).toHaveLength(1);
    });

    it("knows nothing about a machine it did not make", async () => {
      await using provisioner = await create();
      await expect(provisioner.describe("i-9", CALL)).rejects.toMatchObject({ reason: "INSTANCE_NOT_FOUND" });
    });

    it("stops and starts a machine under its id, or says that it cannot", async () => {
      await using provisioner = await create();
      await obtain(provisioner);
      if (provisioner.capabilities.stopStart === "unsupported") {
        await expect(provisioner.stop("i-1", CALL)).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
        await expect(provisioner.start("i-1", CALL)).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
        return;
      }
      await provisioner.stop("i-1", CALL);
      await until(provisioner, "i-1", "stopped");
      await provisioner.stop("i-1", CALL);
      expect((await provisioner.describe("i-1", CALL)).url).toBeUndefined();
      await provisioner.start("i-1", CALL);
      await until(provisioner, "i-1", "running");
      await provisioner.start("i-1", CALL);
      await expect(provisioner.start("i-9", CALL)).rejects.toMatchObject({ reason: "INSTANCE_NOT_FOUND" });
    });

    it("does nothing for a caller that has left", async () => {
      await using provisioner = await create();
      const call = { signal: AbortSignal.abort(new Error("left")) };
      await expect(provisioner.launch({ instanceId: "i-3", tags: TAGS }, call)).rejects.toThrow("left");
      await expect(provisioner.list({ tags: TAGS, states: [] }, call)).rejects.toThrow("left");
      await expect(provisioner.describe("i-3", call)).rejects.toThrow("left");
      await expect(provisioner.describe("i-3", CALL)).rejects.toMatchObject({ reason: "INSTANCE_NOT_FOUND" });
    });
  });
}
