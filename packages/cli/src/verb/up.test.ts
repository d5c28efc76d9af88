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

describe("turnbox up", () => {
  it("starts the server's program with home, port and the host's entry, and passes its exit code", async () => {
    await installServices(harness.home, {
      orchestrator: `console.error(JSON.stringify(process.argv.slice(2)));
        console.log("turnbox ready http://127.0.0.1:7700"); process.exit(5);`,
    });
    const ran = await harness.run(["up", "--json"]);
    expect(ran.exitCode).toBe(5);
    expect(ran.json()).toEqual({ ready: true, url: "http://127.0.0.1:7700", home: harness.home });
    const hostEntry = join(harness.home, "node_modules/@turnbox/sandbox-host/turnbox-sandbox-host.mjs");
    expect(ran.stderr).toContain(JSON.stringify(["serve", "--home", harness.home, "--host-entry", hostEntry]));
  });

  it("leaves the port to the configuration, unless TURNBOX_PORT names one", async () => {
    await installServices(harness.home, { orchestrator: `console.error(process.argv.slice(2).join(" "));` });
    expect((await harness.run(["up", "--json"])).stderr).not.toContain("--port");
    const ran = await harness.run(["up", "--json"], { variables: { TURNBOX_PORT: "7800" } });
    expect(ran.stderr).toContain("--port 7800");
  });

  it("passes on what the server has against its home or port", async () => {
    await installServices(harness.home, {
      orchestrator: `console.error("PORT_IN_USE: 7700 is taken\\nremedy: choose another"); process.exit(1);`,
    });
    const ran = await harness.run(["up", "--json"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.json()).toMatchObject({ error: { reason: "PORT_IN_USE", message: "7700 is taken" } });
  });

  it("says what is missing where the services are not installed", async () => {
    const ran = await harness.run(["up"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("COMMAND_MISSING: the package @turnbox/orchestrator is not installed");
  });
});
