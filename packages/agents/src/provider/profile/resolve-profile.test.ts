import { inspect } from "node:util";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { Secret } from "@turnbox/client";
import type { RawProfile } from "./raw-profile.ts";
import { resolveProfile } from "./resolve-profile.ts";

describe("a resolved profile", () => {
  it("is local, in the workspace, and open, where nothing is said", () => {
    expect(resolveProfile({})).toEqual({
      profile: "default",
      backend: "local",
      syncMode: "none",
      persistence: "transient",
      runtimeRootDir: "",
      destroyOnStop: true,
      env: {},
      secretEnv: {},
      network: { allowPublicIngress: true, allowOutbound: true, allowList: [], denyList: [], required: false },
      daytona: undefined,
    });
  });

  it("syncs and is closed where it is remote", () => {
    const { syncMode, network } = resolveProfile({ backend: "turnbox" });
    expect(syncMode).toBe("session-bidirectional");
    expect(network).toMatchObject({ allowPublicIngress: false, allowOutbound: false });
  });

  it("takes from the profile, then from the defaults, and maps entry by entry", () => {
    const resolved = resolveProfile(
      { backend: "turnbox", env: { A: "mine" }, network: { allowOutbound: true }, runtimeRootDir: "//srv/app/" },
      { backend: "local", persistence: "archive", env: { A: "usual", B: "usual" }, network: { required: true } },
    );
    expect(resolved).toMatchObject({ backend: "turnbox", persistence: "archive", env: { A: "mine", B: "usual" } });
    expect(resolved.network).toMatchObject({ allowOutbound: true, required: true });
    expect(resolved.runtimeRootDir).toBe("/srv/app");
  });

  it.each([
    ["transient", undefined, true],
    ["archive", undefined, true],
    ["reuse", undefined, false],
    ["reuse", true, true],
    ["transient", false, false],
  ])("with persistence %s and destroyOnStop %p destroys on stop: %p", (persistence, given, expected) => {
    const raw = { persistence, ...(given === undefined ? {} : { destroyOnStop: given }) };
    expect(resolveProfile(raw).destroyOnStop).toBe(expected);
  });

  it("keeps secrets from being printed, and reveals them on request only", () => {
    const { secretEnv } = resolveProfile({ secretEnv: { KEY: "hush-1", OTHER: new Secret("hush-2") } });
    expect(`${inspect(secretEnv)} ${JSON.stringify(secretEnv)}`).not.toContain("hush");
    expect([secretEnv["KEY"]?.reveal(), secretEnv["OTHER"]?.reveal()]).toEqual(["hush-1", "hush-2"]);
  });

  it("has Daytona's part where the backend is daytona, with the startup input that is given", () => {
    const daytona = { apiUrl: "https://daytona.example", snapshot: "base-1", autoStop: "15m" };
    expect(resolveProfile({ backend: "daytona", daytona }).daytona).toEqual({
      apiUrl: "https://daytona.example",
      target: "",
      image: "",
      snapshot: "base-1",
      class: "",
      autoStop: "15m",
      autoArchive: "",
      startupSource: "snapshot",
      startupRef: "base-1",
    });
    expect(resolveProfile({ backend: "daytona" }).daytona).toMatchObject({ startupSource: "image", startupRef: "" });
    expect(resolveProfile({ backend: "local" }, { daytona }).daytona).toBeUndefined();
  });

  it.each<[string, RawProfile]>([
    ["backend", { backend: "docker" }],
    ["syncMode", { syncMode: "always" }],
    ["persistence", { persistence: "forever" }],
    ["profile", { profile: "" }],
    ["runtimeRootDir", { backend: "turnbox", runtimeRootDir: "relative" }],
    ["runtimeRootDir", { backend: "turnbox", runtimeRootDir: "/a/../b" }],
    ["runtimeRootDir", { backend: "turnbox", runtimeRootDir: "/" }],
    ["runtimeRootDir", { backend: "local", runtimeRootDir: "/workspace" }],
    ["destroyOnStop", { destroyOnStop: "yes" as unknown as boolean }],
    ["env", { env: { "1A": "x" } }],
    ["env", { env: { A: 1 as unknown as string } }],
    ["env", { env: "A=1" as unknown as Record<string, string> }],
    ["secretEnv", { secretEnv: { A: "with\0nul" } }],
    ["secretEnv", { env: { A: "x" }, secretEnv: { A: "y" } }],
    ["network.allowOutbound", { network: { allowOutbound: 1 as unknown as boolean } }],
    ["network.allowList", { network: { allowList: "x" as unknown as string[] } }],
    ["network.denyList[1]", { network: { denyList: ["a", ""] } }],
    ["network.allowlist", { network: { allowlist: [] } as unknown as RawProfile["network"] & object }],
    ["daytona", { backend: "turnbox", daytona: {} }],
    ["daytona.startupSource", { backend: "daytona", daytona: { image: "a", snapshot: "b" } }],
    ["daytona.apiUrl", { backend: "daytona", daytona: { apiUrl: "ftp://x" } }],
    ["daytona.autoStop", { backend: "daytona", daytona: { autoStop: "soon" } }],
    ["profile.sycnMode", { sycnMode: "none" } as RawProfile],
  ])("names %s where it breaks its rule", (field, raw) => {
    let thrown: unknown;
    try {
      resolveProfile(raw);
    } catch (failure) {
      thrown = failure;
    }
    expect(thrown).toMatchObject({ reason: "INVALID_ARGUMENT", metadata: { field, rule: expect.stringMatching(/./) } });
  });
});

const PAGE = readFileSync(new URL("../../../../../docs/PROVIDERS.md", import.meta.url), "utf8");

describe("the table of the profile's fields", () => {
  it("has a row for every field, and says its meaning, default and who honours it", () => {
    const { network, daytona, ...rest } = resolveProfile({ backend: "daytona" });
    const below = (name: string, fields: object): readonly string[] =>
      Object.keys(fields).map((one) => `${name}.${one}`);
    const fields = [...Object.keys(rest), ...below("network", network), ...below("daytona", daytona ?? {})];
    expect(fields).toHaveLength(22);
    const rows = PAGE.split("\n").filter((line) => line.startsWith("| `"));
    for (const field of fields) {
      const cells = rows.find((row) => row.startsWith(`| \`${field}\` `))?.split("|");
      expect([field, cells?.slice(1, -1).every((cell) => cell.trim() !== ""), cells?.length]).toEqual([field, true, 6]);
    }
  });
});
