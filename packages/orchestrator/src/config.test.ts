import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { defaultHome, hostEnvironment, loadConfig } from "./config.ts";

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "turnbox-config-"));
});
afterEach(() => {
  rmSync(home, { recursive: true });
});
const write = (value: unknown): void => {
  writeFileSync(join(home, "config.json"), JSON.stringify(value));
};

describe("loadConfig", () => {
  it("has defaults for everything", () => {
    expect(loadConfig(home, {})).toMatchObject({ port: 7700, hosts: 1, bindAddress: "127.0.0.1", logLevel: "info" });
  });

  it("takes the environment before the file, and leaves the sections of others alone", () => {
    write({ orchestrator: { port: 1234, hosts: 2 }, host: { anything: true } });
    expect(loadConfig(home, { TURNBOX_PORT: "4321", TURNBOX_POOL_SIZE: "1GiB" })).toMatchObject({
      port: 4321,
      hosts: 2,
    });
  });

  it.each([
    ["an unknown key", { orchestrator: { prot: 1 } }, "prot"],
    ["a section of no service", { hots: {}, host: {} }, "hots"],
    ["a number out of range", { orchestrator: { hosts: 0 } }, "hosts"],
    ["half of the TLS material", { orchestrator: { tlsKeyPath: "/k.pem" } }, "tlsCertificatePath"],
    ["more instances at least than at most", { orchestrator: { minInstances: 9, maxInstances: 3 } }, "minInstances"],
    ["a fixed list without hosts", { orchestrator: { provisioner: "static" } }, "staticHosts"],
    ["a host without a url", { orchestrator: { provisioner: "static", staticHosts: ["h1"] } }, "ID=URL"],
    ["something that is no object", [], "JSON object"],
  ])("refuses %s and names it", (_what, content, named) => {
    write(content);
    expect(() => loadConfig(home, {})).toThrow(
      expect.objectContaining({ reason: "CONFIG_INVALID", message: expect.stringContaining(named) }),
    );
  });

  it("takes what the fleet keeps to, and says nothing of what the store's url holds", () => {
    const config = loadConfig(home, {
      TURNBOX_PROVISIONER: "static",
      TURNBOX_STATIC_HOSTS: "h1=https://h1.test:9100,h2=https://h2.test:9100",
      TURNBOX_STORE_URL: "postgres://u:hidden@db/fleet",
      TURNBOX_FLEET_ID: "f-1",
      TURNBOX_IDLE_COOLDOWN: "5m",
    });
    expect(config).toMatchObject({ provisioner: "static", fleetId: "f-1", idleCooldown: 300_000, warmPoolTarget: 2 });
    expect(config.storeUrl?.reveal()).toBe("postgres://u:hidden@db/fleet");
    expect(JSON.stringify(config)).not.toContain("hidden");
  });

  it("refuses a file that is not JSON", () => {
    writeFileSync(join(home, "config.json"), "{");
    expect(() => loadConfig(home, {})).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
  });
});

describe("hostEnvironment", () => {
  it("passes on what a host needs and what is a host's setting, and nothing else (D19)", () => {
    const env = {
      PATH: "/bin",
      HOME: "/root",
      AWS_SECRET_ACCESS_KEY: "x",
      NODE_OPTIONS: "--inspect",
      TURNBOX_PORT: "1",
      TURNBOX_HEADROOM: "0.1",
      TURNBOX_LOG_LEVEL: "debug",
      TURNBOX_POOL_SIZE: "1GiB",
      TURNBOX_HOME: "/elsewhere",
      OTEL_TRACES_EXPORTER: "otlp",
    };
    expect(hostEnvironment("/h", env)).toEqual({
      PATH: "/bin",
      HOME: "/root",
      TURNBOX_LOG_LEVEL: "debug",
      TURNBOX_POOL_SIZE: "1GiB",
      TURNBOX_HOME: "/h",
      OTEL_TRACES_EXPORTER: "otlp",
    });
  });
});

describe("defaultHome", () => {
  it("is the variable's, or below the user's own", () => {
    expect(defaultHome({ TURNBOX_HOME: "/x" })).toBe("/x");
    expect(defaultHome({})).toMatch(/\/\.turnbox$/);
  });
});
