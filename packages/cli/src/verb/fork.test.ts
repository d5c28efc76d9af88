import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, type World } from "@turnbox/client/fake";

let world: World;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox fork", () => {
  it("prints the id of each child, made from the present files unless a snapshot is named", async () => {
    expect((await harness.run(["fork", "web"])).stdout).toBe("fleet:i1:child0\n");
    expect((await harness.run(["fork", "web", "-n", "2", "--from", "#2", "--label", "try=fix"])).stdout).toBe(
      "fleet:i1:child0\nfleet:i1:child1\n",
    );
    expect(world.forked).toMatchObject([
      { sandboxId: "fleet:i1:abc123", snapshotId: "", count: 1, labels: {} },
      { snapshotId: "s2", count: 2, labels: { try: "fix" } },
    ]);
    expect(world.forked[0]?.idempotencyKey).not.toBe("");
  });

  it("prints those that were made where others were not, and fails", async () => {
    world.room = 1;
    const ran = await harness.run(["fork", "web", "-n", "3"]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "fleet:i1:child0\n" });
    expect(ran.stderr).toMatch(/^2 of 3 were not made.*\nPOOL_FULL: the pool is full\nremedy: .+\n$/);
    const asJson = await harness.run(["fork", "web", "-n", "2", "--json"]);
    expect(asJson).toMatchObject({ exitCode: 1, stderr: "" });
    expect(asJson.json()).toMatchObject({
      sandboxId: "fleet:i1:abc123",
      children: [{ sandboxId: "fleet:i1:child0" }, { error: { reason: "POOL_FULL" } }],
    });
  });

  it.each(["0", "101", "-1", "x", "1.5"])("refuses to make %s of them, and sends nothing", async (count) => {
    expect((await harness.run(["fork", "web", `--count=${count}`])).exitCode).toBe(2);
    expect(harness.calls).toEqual([]);
  });
});
