import { describe, expect, it } from "@jest/globals";
import { parseConfig } from "@turnbox/core";
import { HOST_SETTINGS } from "./config.ts";

const parse = (env: Readonly<Record<string, string>> = {}) => parseConfig(HOST_SETTINGS, { env });

describe("the host's settings", () => {
  it("have the defaults that the service is specified with", () => {
    expect(parse()).toMatchObject({
      storageBackend: "zfs",
      containerRuntime: "gvisor",
      advertiseAddr: "127.0.0.1",
      poolName: null,
      basesDataset: "bases",
      sessionsDataset: "sessions",
      sessionsRootDir: null,
      maxSessions: null,
      defaultSessionQuota: 10 * 1024 ** 3,
      maxSnapshotsPerSession: 1000,
      maxProcessesPerSession: 64,
      maxCpus: null,
      maxMemory: null,
      maxPids: null,
      maxSessionQuota: null,
      maxTtl: null,
      toolResultSession: 64 * 1024 ** 2,
      toolResultTotal: 1024 ** 3,
      dataReserve: 512 * 1024 ** 2,
      perToolSnapshots: false,
      snapshotPrefix: "turn",
      toolTimeout: 300_000,
      poolSpaceWarnThreshold: 0.85,
      poolSpaceCritThreshold: 0.95,
      healthCheckInterval: 30_000,
      pauseDrainTimeout: 30_000,
      shutdownTimeout: 30_000,
      privateRanges: [],
      allowMetadata: false,
    });
  });

  it("take names for the pool and its datasets, and refuse what is none", () => {
    const names = { TURNBOX_POOL_NAME: "tank", TURNBOX_BASES_DATASET: "b", TURNBOX_SESSIONS_DATASET: "s.1" };
    expect(parse(names)).toMatchObject({ poolName: "tank", basesDataset: "b", sessionsDataset: "s.1" });
    for (const env of [
      { TURNBOX_POOL_NAME: "1tank" },
      { TURNBOX_POOL_NAME: "a/b" },
      { TURNBOX_BASES_DATASET: "-x" },
      { TURNBOX_SESSIONS_DATASET: "a@b" },
      { TURNBOX_SESSIONS_ROOT_DIR: "relative" },
      { TURNBOX_MAX_SNAPSHOTS_PER_SESSION: "-1" },
      { TURNBOX_PER_TOOL_SNAPSHOTS: "maybe" },
    ])
      expect(() => parse(env)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
  });
});
