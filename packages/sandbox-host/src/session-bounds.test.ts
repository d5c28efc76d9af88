import { describe, expect, it } from "@jest/globals";
import { parseConfig } from "@turnbox/core";
import { HOST_SETTINGS } from "./config.ts";
import { sandboxMemory, sessionCeilings, sessionDefaults, hostCapacity } from "./session-bounds.ts";

const GiB = 1024 ** 3;
const MACHINE = { cpus: 4, memoryBytes: 8 * GiB, poolBytes: 5 * GiB + 12_345 };
const boundsOf = (env: Readonly<Record<string, string>> = {}) => {
  const config = parseConfig(HOST_SETTINGS, { env });
  const ceilings = sessionCeilings(config, MACHINE);
  return { config, ceilings, defaults: sessionDefaults(config, ceilings) };
};

describe("the bounds of sessions", () => {
  it("are the machine's own unless set, and nothing is without a bound but time", () => {
    const { config, ceilings, defaults } = boundsOf();
    expect(ceilings).toEqual({ cpus: 4, memoryBytes: 8 * GiB, pids: 4096, quotaBytes: 5 * GiB, unnamed: {} });
    expect(defaults).toMatchObject({ quotaBytes: 5 * GiB, limits: { memoryBytes: 2 * GiB, pids: 4096 } });
    expect(hostCapacity(config, 8 * GiB)).toBe(1024);
    expect(sandboxMemory(config, 8 * GiB)).toBe(7.5 * GiB);
  });

  it("that are set hold for defaults too, and 0 is none", () => {
    const set = boundsOf({
      TURNBOX_MAX_PIDS: "100",
      TURNBOX_MAX_MEMORY: "1GiB",
      TURNBOX_MAX_CPUS: "0.5",
      TURNBOX_MAX_TTL: "1h",
    });
    expect(set.defaults.limits).toEqual({ pids: 100, memoryBytes: GiB, cpus: 0.5 });
    expect(set.ceilings).toMatchObject({ ttlMs: 3_600_000, unnamedTtlMs: 3_600_000 });
    const none = boundsOf({
      TURNBOX_MAX_PIDS: "0",
      TURNBOX_MAX_CPUS: "0",
      TURNBOX_MAX_MEMORY: "0",
      TURNBOX_MAX_SESSION_QUOTA: "0",
      TURNBOX_DEFAULT_SESSION_QUOTA: "0",
      TURNBOX_MAX_SESSIONS: "0",
    });
    expect(none.ceilings).toEqual({ unnamed: {} });
    expect(none.defaults.quotaBytes).toBeNull();
    expect(hostCapacity(none.config, 8 * GiB)).toBe(0);
  });

  it("let a default that the operator raised stand where the ceiling is not set", () => {
    expect(boundsOf({ TURNBOX_DEFAULT_PIDS: "9000" }).ceilings.pids).toBe(9000);
  });
});
