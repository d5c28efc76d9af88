import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "../error/sandbox-error.ts";
import { Secret } from "../secret/secret.ts";
import { type ConfigSources, describeConfig, parseConfig } from "./config.ts";
import { bytes, choice, durationMs, filePath, flag, fraction, int, secret, text, textList } from "./setting.ts";

const TABLE = {
  maxSessions: int({
    env: "TURNBOX_MAX_SESSIONS",
    default: 100,
    min: 1,
    max: 10_000,
    description: "Sessions on this host.",
  }),
  poolSizeBytes: bytes({ env: "TURNBOX_POOL_SIZE", default: null, description: "Size of the pool." }),
  toolTimeoutMs: durationMs({ env: "TURNBOX_TOOL_TIMEOUT", default: 120_000, description: "Limit of a tool call." }),
  storage: choice({
    env: "TURNBOX_STORAGE",
    values: ["zfs", "local-disk"],
    default: "zfs",
    description: "Where files live.",
  }),
  advertise: text({ env: "TURNBOX_ADVERTISE", default: "127.0.0.1", description: "Address for others." }),
  perToolSnapshots: flag({ env: "TURNBOX_PER_TOOL", default: false, description: "A snapshot after each tool." }),
  root: filePath({ env: "TURNBOX_ROOT", default: null, description: "A folder." }),
  critical: fraction({ env: "TURNBOX_CRITICAL", default: 0.9, description: "Threshold." }),
  hosts: textList({ env: "TURNBOX_HOSTS", default: [], description: "Hosts." }),
  password: secret({ env: "TURNBOX_PASSWORD", default: null, description: "A secret." }),
} as const;

const parse = (sources: Partial<ConfigSources>) => parseConfig(TABLE, { env: {}, ...sources });

const problemsOf = (sources: Partial<ConfigSources>): string => {
  try {
    parse(sources);
  } catch (thrown) {
    expect(thrown).toMatchObject({ reason: "CONFIG_INVALID" });
    return (thrown as SandboxError).message;
  }
  throw new Error("was accepted");
};

describe("parseConfig", () => {
  it("gives the defaults where no source says anything, frozen and typed", () => {
    const config = parse({});
    const maxSessions: number = config.maxSessions;
    const storage: "zfs" | "local-disk" = config.storage;
    const poolSizeBytes: number | null = config.poolSizeBytes;
    expect({ maxSessions, storage, poolSizeBytes }).toEqual({ maxSessions: 100, storage: "zfs", poolSizeBytes: null });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it("lets the environment win over the file and the file over the default", () => {
    const file = { maxSessions: 7, storage: "local-disk" };
    expect(parse({ file, env: { TURNBOX_MAX_SESSIONS: "8" } })).toMatchObject({
      maxSessions: 8,
      storage: "local-disk",
    });
  });

  it("reads every kind from the environment", () => {
    const env = {
      TURNBOX_POOL_SIZE: "20GiB",
      TURNBOX_TOOL_TIMEOUT: "30s",
      TURNBOX_PER_TOOL: "1",
      TURNBOX_ROOT: "/srv//turnbox/",
      TURNBOX_CRITICAL: "0.5",
      TURNBOX_HOSTS: "http://a:1, http://b:2",
      TURNBOX_PASSWORD: "x",
    };
    expect(parse({ env })).toMatchObject({
      poolSizeBytes: 20 * 2 ** 30,
      toolTimeoutMs: 30_000,
      perToolSnapshots: true,
      root: "/srv/turnbox/",
      critical: 0.5,
      hosts: ["http://a:1", "http://b:2"],
      password: new Secret("x"),
    });
  });

  it("takes an empty variable for one that is not set", () => {
    expect(parse({ env: { TURNBOX_MAX_SESSIONS: "" } }).maxSessions).toBe(100);
  });

  it("names every problem at once", () => {
    const problems = problemsOf({
      file: { maxSesions: 3, storage: "btrfs", toolTimeoutMs: "soon", ["__proto__x"]: 1 },
      env: { TURNBOX_MAX_SESSIONS: "0", TURNBOX_TYPO: "1", HOME: "/root" },
    });
    for (const part of [
      '"maxSesions"',
      "storage must be one of zfs",
      "toolTimeoutMs must",
      "TURNBOX_MAX_SESSIONS must",
      "TURNBOX_TYPO",
      "__proto__x",
    ]) {
      expect(problems).toContain(part);
    }
    expect(problems).not.toContain("HOME");
  });

  it("refuses a __proto__ key that JSON brings along (attack 56)", () => {
    expect(problemsOf({ file: JSON.parse('{"__proto__": {"maxSessions": 1}}') })).toContain("__proto__");
    expect(parse({}).maxSessions).toBe(100);
  });

  it("leaves the keys and variables of other parts alone", () => {
    const sources = {
      file: { port: 1 },
      foreignKeys: ["port"],
      env: { TURNBOX_PORT: "1" },
      foreignEnv: ["TURNBOX_PORT"],
    };
    expect(parse(sources).maxSessions).toBe(100);
  });

  it.each([[[]], ["text"], [null], [3]])("refuses %j as the whole file", (file) => {
    expect(problemsOf({ file })).toContain("JSON object");
  });

  it.each([
    ["maxSessions", "7"],
    ["maxSessions", 1.5],
    ["maxSessions", null],
    ["poolSizeBytes", "20 XB"],
    ["poolSizeBytes", -1],
    ["poolSizeBytes", "1e99"],
    ["toolTimeoutMs", "-5s"],
    ["toolTimeoutMs", 30],
    ["toolTimeoutMs", "30"],
    ["perToolSnapshots", "yes"],
    ["root", "relative/path"],
    ["root", "/a\u0000b"],
    ["critical", 1.01],
    ["hosts", "a,b"],
    ["hosts", [1]],
  ])("refuses %s = %j in the file", (key, value) => {
    expect(problemsOf({ file: { [key]: value } })).toContain(`${key} must`);
  });

  it("refuses a duration without a unit with the remedy, and takes numbers for counts and sizes", () => {
    const problems = problemsOf({ env: { TURNBOX_TOOL_TIMEOUT: "30" } });
    expect(problems).toContain('TURNBOX_TOOL_TIMEOUT must be a duration with its unit such as "30s" or "250ms"');
    const env = { TURNBOX_MAX_SESSIONS: "30", TURNBOX_POOL_SIZE: "30", TURNBOX_TOOL_TIMEOUT: "0" };
    expect(parse({ env })).toMatchObject({ maxSessions: 30, poolSizeBytes: 30, toolTimeoutMs: 0 });
    expect(parse({ file: { poolSizeBytes: 30, toolTimeoutMs: 0 } })).toMatchObject({
      poolSizeBytes: 30,
      toolTimeoutMs: 0,
    });
  });

  it("does not repeat a secret in a problem", () => {
    expect(problemsOf({ file: { password: ["hunter2"] } })).not.toContain("hunter2");
  });
});

describe("describeConfig", () => {
  it("tells value, source and description of each key, with secrets redacted", () => {
    const entries = describeConfig(TABLE, { file: { maxSessions: 3 }, env: { TURNBOX_PASSWORD: "hunter2" } });
    expect(entries.map((entry) => entry.key)).toEqual(Object.keys(TABLE));
    expect(entries).toContainEqual({
      key: "maxSessions",
      env: "TURNBOX_MAX_SESSIONS",
      value: 3,
      source: "file",
      description: "Sessions on this host.",
    });
    expect(entries.find((entry) => entry.key === "password")).toMatchObject({ value: "[redacted]", source: "env" });
    expect(entries.find((entry) => entry.key === "storage")).toMatchObject({ value: "zfs", source: "default" });
  });
});
