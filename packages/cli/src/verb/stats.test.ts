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

describe("turnbox stats", () => {
  it("shows what a sandbox uses", async () => {
    const { stdout } = await harness.run(["stats", "web"]);
    expect(stdout).toContain("memory                  12.0 MiB of 512.0 MiB\n");
    expect(stdout).toContain("processor time          1.25 s\n");
    expect((await harness.run(["stats", "web", "--json"])).json()).toMatchObject({
      sandboxId: "fleet:i1:abc123",
      cpuTimeMs: 1250,
      pids: 3,
      spaceUsedBytes: 1_048_576,
    });
  });

  it("shows every host, with the server's token, and no host elsewhere", async () => {
    const { stdout } = await harness.run(["stats"]);
    expect(stdout).toMatch(/^HOST .*\ni0 +healthy +2\/9 .* 1\.0 GiB of 4\.0 GiB +ONLINE +3\.0 GiB of 4\.0 GiB\n$/);
    expect((await harness.run(["stats", "--json"])).json()).toMatchObject({
      hosts: [{ instanceId: "i0", status: "healthy", cpus: 2, loadAverage: 0.5, maxSessions: 9 }],
    });
    harness.calls.length = 0;
    const foreign = await harness.run(["stats", "--url", "https://box.example", "--token", "box"]);
    expect(foreign.stderr).toMatch(/^UNIMPLEMENTED: hosts are measured only where/);
    expect(harness.calls.filter(({ peer }) => peer === "host")).toEqual([]);
  });
});
