import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/client";
import { createDirectoryTurnbox, type DirectoryTurnbox } from "../fake/directory-turnbox.suite.ts";
import { createLocalProvider } from "../local/local-provider.ts";
import type { Provider } from "../provider.ts";
import { describeProvider } from "../provider.suite.ts";
import { createTurnboxProvider } from "../turnbox/turnbox-provider.ts";
import { assertConforming, checkProvider, type Finding } from "./index.ts";

describeProvider({
  name: "local",
  backend: "local",
  make: () => createLocalProvider(),
  notApplicable: [
    "leaves out what the excludes say",
    "finds a runtime after a crash by its labels",
    "finds nothing that was destroyed",
  ],
});

describe("on a fake of the server", () => {
  let turnbox: DirectoryTurnbox;
  beforeAll(async () => {
    turnbox = await createDirectoryTurnbox();
  });
  afterAll(async () => {
    await turnbox[Symbol.asyncDispose]();
  });
  let runtimes = 0;
  const profile = () => ({ runtimeRootDir: join(turnbox.root, `runtime-${(runtimes += 1)}`) });
  const check = (change: (provider: Provider) => Partial<Provider>): Promise<readonly Finding[]> =>
    checkProvider(
      () => {
        const provider = createTurnboxProvider({ turnbox });
        return { ...provider, ...change(provider) };
      },
      { backend: "turnbox", profile: profile() },
    );
  const failed = (findings: readonly Finding[]): readonly string[] =>
    findings.filter(({ outcome }) => outcome === "failed").map((finding) => finding.check);

  it("passes the provider turnbox, which leaves neither sandboxes nor handles", async () => {
    const findings = await check(() => ({}));
    assertConforming(findings);
    expect(findings.map(({ outcome }) => outcome)).not.toContain("not applicable");
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("names a provider that says another backend", async () => {
    expect(failed(await check(() => ({ backend: () => "e2b" })))).toContain("says its backend");
  });

  it("destroys also where a step fails, and joins what failed", async () => {
    const broken = async (): Promise<never> => {
      throw new SandboxError("QUOTA_EXCEEDED", "no room");
    };
    const findings = await check(() => ({ syncToRuntime: broken, syncFromRuntime: broken }));
    expect(failed(findings)).toEqual([
      "brings the workspace in at the start",
      "syncs at a turn's boundaries in both directions",
      "gives the session the same runtime when it prepares again",
      "brings the files out at the stop",
    ]);
    expect(turnbox.sandboxes.size).toBe(0);
    expect(() => assertConforming(findings)).toThrow(/at the start: QUOTA_EXCEEDED: no room\n[^]*at the stop: QUOTA/);
  });

  it("names a destroy that does nothing, and one that fails the second time", async () => {
    const idle = await check(() => ({ destroy: async (state) => ({ ...state, state: "destroyed" }) }));
    expect(failed(idle)).toEqual(["finds nothing that was destroyed"]);
    let times = 0;
    const once = await check((provider) => ({
      destroy: async (state, options) => {
        times += 1;
        if (times > 1) throw new SandboxError("SANDBOX_NOT_FOUND", "gone");
        return await provider.destroy(state, options);
      },
    }));
    expect(failed(once)).toEqual(["destroys a second time without effect"]);
    turnbox.sandboxes.clear();
  });

  it("destroys what a failed prepare has made", async () => {
    const findings = await check((provider) => ({
      prepare: async (request, options) => {
        await provider.prepare(request, options);
        throw new SandboxError("HOST_UNREACHABLE", "the answer was lost");
      },
    }));
    expect(failed(findings)).toContain("prepares a runtime with a launcher and a tool host");
    expect(findings.find(({ check: name }) => name === "brings the workspace in at the start")?.outcome).toBe(
      "not reached",
    );
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("names an agent that gets the key to a provider", async () => {
    const findings = await check((provider) => ({
      prepare: async (request, options) => {
        const prepared = await provider.prepare(request, options);
        return { ...prepared, launch: { ...prepared.launch, env: request.agentEnv } };
      },
    }));
    expect(failed(findings)).toEqual(["keeps the keys to providers from the agent"]);
  });
});
