import { join } from "node:path";
import { tmpdir } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createDirectoryTurnbox, type DirectoryTurnbox } from "../fake/directory-turnbox.suite.ts";
import type { RawProfile } from "../profile/raw-profile.ts";
import { resolveProfile } from "../profile/resolve-profile.ts";
import type { PrepareRequest } from "../provider.ts";
import { createTurnboxProvider, type TurnboxProvider } from "./turnbox-provider.ts";

let turnbox: DirectoryTurnbox;
let provider: TurnboxProvider;

beforeEach(async () => {
  turnbox = await createDirectoryTurnbox();
  provider = createTurnboxProvider({ turnbox, defaults: { template: "mini", ttlMs: 60_000 } });
});

afterEach(async () => {
  await provider[Symbol.asyncDispose]();
  for (const { handles } of turnbox.sandboxes.values()) expect(handles).toBe(0);
  await turnbox[Symbol.asyncDispose]();
});

const requestOf = (profile: RawProfile = {}, changes: Partial<PrepareRequest> = {}): PrepareRequest => ({
  sessionId: "session-1",
  workspaceId: "workspace-1",
  sandboxId: "sandbox-1",
  instanceId: "",
  localRootDir: tmpdir(),
  localAdditionalDirs: [],
  sandbox: resolveProfile({ backend: "turnbox", runtimeRootDir: join(turnbox.root, "runtime"), ...profile }),
  agentCommand: "agent --acp",
  agentEnv: { AGH_ROLE: "coder", HOME: "/home/me" },
  permissions: "approve-reads",
  resumeAcpState: "",
  ...changes,
});

describe("preparing a sandbox", () => {
  it("looks for the labels before it makes one, with the session's identity, policy and variables", async () => {
    const network = { allowOutbound: true, allowList: ["example.com"], denyList: ["10.0.0.0/8"], required: true };
    const prepared = await provider.prepare(requestOf({ network, env: { EDITOR: "vi" }, secretEnv: { KEY: "hush" } }));
    expect(turnbox.calls).toEqual(["list", "create"]);
    const made = turnbox.sandboxes.get("fleet:fake:1");
    expect(made?.options).toMatchObject({
      template: "mini",
      ttlMs: 60_000,
      env: { EDITOR: "vi" },
      network: { ...network, allowPublicIngress: false },
      labels: {
        "turnbox.session-id": "session-1",
        "turnbox.workspace-id": "workspace-1",
        "turnbox.sandbox-id": "sandbox-1",
        "turnbox.profile": "default",
      },
    });
    const { launch, toolHost } = prepared;
    expect(launch).toMatchObject({ command: "agent", args: ["--acp"], env: { AGH_ROLE: "coder", EDITOR: "vi" } });
    expect(launch.env).not.toHaveProperty("HOME");
    expect(launch.secretEnv?.["KEY"]?.reveal()).toBe("hush");
    expect(toolHost.permissions).toBe("approve-reads");
    expect(prepared.warnings).toEqual([]);
  });

  it("takes the sandbox of the known id, resumes it, and gives it the policy of now", async () => {
    const { state } = await provider.prepare(requestOf());
    const kept = turnbox.sandboxes.get(state.instanceId);
    if (kept === undefined) throw new Error("nothing was made");
    kept.state = "paused";
    turnbox.calls.length = 0;
    const again = await provider.prepare(
      requestOf(
        { network: { allowOutbound: true } },
        { instanceId: state.instanceId, providerState: state.providerState },
      ),
    );
    expect(again.state.instanceId).toBe(state.instanceId);
    expect(turnbox.calls).toEqual(["resume"]);
    expect(kept).toMatchObject({ state: "active", network: { allowOutbound: true } });
  });

  it("repairs one that failed", async () => {
    const { state } = await provider.prepare(requestOf());
    const kept = turnbox.sandboxes.get(state.instanceId);
    if (kept !== undefined) kept.state = "failed";
    await provider.prepare(requestOf({}, { instanceId: state.instanceId }));
    expect(turnbox.calls.at(-1)).toBe("repair");
  });

  it("goes by the labels where the id is gone, or is that of another session's sandbox", async () => {
    const mine = await provider.prepare(requestOf());
    const other = await provider.prepare(requestOf({}, { sessionId: "session-2", sandboxId: "sandbox-2" }));
    expect(other.state.instanceId).not.toBe(mine.state.instanceId);
    for (const instanceId of ["fleet:fake:99", other.state.instanceId]) {
      const again = await provider.prepare(requestOf({}, { instanceId }));
      expect(again.state.instanceId).toBe(mine.state.instanceId);
    }
    expect(turnbox.sandboxes.size).toBe(2);
  });

  it("joins the making of one that is still being made, by its key", async () => {
    const { state } = await provider.prepare(requestOf());
    const kept = turnbox.sandboxes.get(state.instanceId);
    if (kept !== undefined) kept.state = "creating";
    turnbox.calls.length = 0;
    expect((await provider.prepare(requestOf())).state.instanceId).toBe(state.instanceId);
    expect(turnbox.calls).toEqual(["list", "create"]);
    expect(turnbox.sandboxes.size).toBe(1);
  });

  it("makes no second one while an instance that may have it does not answer", async () => {
    turnbox.unreachableInstances = ["i-2"];
    await expect(provider.prepare(requestOf())).rejects.toMatchObject({ reason: "PROVIDER_UNAVAILABLE" });
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("makes nothing for a command that cannot be read", async () => {
    await expect(provider.prepare(requestOf({}, { agentCommand: "agent 'open" }))).rejects.toThrow(/agentCommand/);
    expect(turnbox.calls).toEqual([]);
  });

  it("warns of a host that has no walls, and is not believed where the policy is required", async () => {
    turnbox.capabilities = { runtime: "none" };
    const { warnings } = await provider.prepare(requestOf({ network: { denyList: ["10.0.0.0/8"] } }));
    expect(warnings).toEqual([expect.stringMatching(/allowOutbound: false/), expect.stringMatching(/denyList/)]);
    await expect(provider.prepare(requestOf({ network: { required: true } }))).rejects.toMatchObject({
      reason: "CAPABILITY_NOT_SUPPORTED",
    });
  });
});

describe("ending a sandbox", () => {
  it("is archived on a host without snapshots by the pause alone, and kept where there is neither", async () => {
    turnbox.capabilities = { snapshots: false };
    const { state } = await provider.prepare(requestOf({ persistence: "archive" }));
    expect((await provider.destroy(state)).state).toBe("archived");
    expect(turnbox.sandboxes.get(state.instanceId)).toMatchObject({ state: "paused", snapshots: [] });
    turnbox.capabilities = { snapshots: false, pause: false };
    await provider.prepare(requestOf({ persistence: "archive" }));
    expect((await provider.destroy(state)).state).toBe("stopped");
  });

  it("archives once, however often it is asked", async () => {
    const { state } = await provider.prepare(requestOf({ persistence: "archive" }));
    await provider.destroy(await provider.destroy(state));
    expect(turnbox.sandboxes.get(state.instanceId)?.snapshots).toHaveLength(1);
  });

  it("is nothing where no sandbox was made, and an error where the state is of another version", async () => {
    const { state } = await provider.prepare(requestOf());
    const none = { ...state, instanceId: "", providerState: undefined };
    expect((await provider.destroy(none)).state).toBe("destroyed");
    const newer = { ...state, providerState: { version: 2 } };
    await expect(provider.destroy(newer)).rejects.toMatchObject({ reason: "INVALID_STATE" });
    await expect(provider.syncToRuntime(newer, { reason: "start" })).rejects.toMatchObject({ reason: "INVALID_STATE" });
    expect(turnbox.sandboxes.size).toBe(1);
  });

  it("tells what is wrong here with a workspace that cannot be synced", async () => {
    const nowhere = requestOf({}, { localRootDir: join(turnbox.root, "nowhere") });
    const { state } = await provider.prepare(nowhere);
    await expect(provider.syncToRuntime(state, { reason: "start" })).rejects.toMatchObject({
      reason: "FILE_NOT_FOUND",
    });
    await expect(provider.syncFromRuntime(state, { reason: "stop" })).rejects.toMatchObject({
      reason: "FILE_NOT_FOUND",
    });
    const signal = AbortSignal.abort();
    const here = { ...state, providerState: { version: 1, ...state.providerState, localRootDir: turnbox.root } };
    const gone = provider.syncFromRuntime(here, { reason: "stop", signal });
    await expect(gone).rejects.toMatchObject({ reason: "CANCELLED" });
    const strict = createTurnboxProvider({ turnbox, limits: { maxEntries: 0 } });
    await expect(strict.syncToRuntime(here, { reason: "start" })).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
    await strict[Symbol.asyncDispose]();
  });

  it("leaves nothing to sync with", async () => {
    const { state } = await provider.prepare(requestOf());
    await provider.destroy(state);
    await expect(provider.syncFromRuntime(state, { reason: "stop" })).rejects.toMatchObject({
      reason: "REMOTE_SANDBOX_NOT_FOUND",
    });
  });
});
