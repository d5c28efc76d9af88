import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness, installServices } from "../cli-harness.suite.ts";
import { createServices, newWorld } from "@turnbox/client/fake";

let harness: Harness;

beforeEach(async () => {
  harness = await createHarness(createServices(newWorld()));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox doctor", () => {
  it("fails where something required is missing", async () => {
    const ran = await harness.run(["doctor"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stdout).toMatch(/^orchestrator +missing$/m);
    expect(ran.stdout).toMatch(/^sandbox-host +missing$/m);
    expect(ran.stdout).toMatch(/^token +found\b/m);
    expect(ran.stdout).toMatch(/^server +found\b/m);
  });

  it("adds what the host's own doctor found", async () => {
    const parts = [
      { name: "runsc", status: "found", version: "20240729", required: true },
      { name: "nftables", status: "missing", required: false, without: "no network", remedy: "apt install nftables" },
    ];
    const config = [
      { key: "maxSessions", value: 4, source: "file" },
      { key: "storageBackend", value: "zfs", source: "default" },
    ];
    await installServices(harness.home, {
      host: `console.log(${JSON.stringify(JSON.stringify({ parts, config }))});`,
    });
    const ran = await harness.run(["doctor", "--json"]);
    expect(ran.exitCode).toBe(0);
    const report = ran.json() as { readonly parts: readonly { readonly name: string }[] };
    expect(report).toMatchObject({ ok: true, config });
    expect(report.parts.map(({ name }) => name)).toEqual([
      "node",
      "orchestrator",
      "token",
      "server",
      "runsc",
      "nftables",
    ]);
    expect((await harness.run(["doctor"])).stdout).toContain(
      "nftables      missing\n              without it: no network\n              remedy: apt install nftables\nmaxSessions = 4 (file)\n",
    );
  });

  it("says when the token can be read by others", async () => {
    await chmod(join(harness.home, "token"), 0o644);
    const ran = await harness.run(["doctor"]);
    expect(ran.stdout).toMatch(/^token +broken\n.* has mode 0644: other users can read it$/m);
  });
});
