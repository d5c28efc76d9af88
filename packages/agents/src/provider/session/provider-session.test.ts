import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { SandboxError, Secret } from "@turnbox/client";
import { createManualClock } from "@turnbox/client/fake";
import { createDirectoryTurnbox, type DirectoryTurnbox } from "../fake/directory-turnbox.suite.ts";
import { createMemorySessionStateStore } from "../fake/memory-session-state-store.suite.ts";
import type { RawProfile } from "../profile/raw-profile.ts";
import { resolveProfile } from "../profile/resolve-profile.ts";
import type { Provider } from "../provider.ts";
import { createRegistry } from "../registry.ts";
import type { SessionStateStore } from "../state/session-state-store.ts";
import { createTurnboxProvider } from "../turnbox/turnbox-provider.ts";
import { reconcileSessions } from "./reconcile-sessions.ts";
import type { SessionOptions } from "./session-options.ts";
import { startSession, type StartRequest } from "./start-session.ts";

let turnbox: DirectoryTurnbox;
let store: SessionStateStore;
let workspace: string;
let warnings: string[];

beforeEach(async () => {
  turnbox = await createDirectoryTurnbox();
  store = createMemorySessionStateStore();
  workspace = mkdtempSync(join(tmpdir(), "turnbox-session-"));
  writeFileSync(join(workspace, "in.txt"), "in");
  warnings = [];
});

afterEach(async () => {
  await turnbox[Symbol.asyncDispose]();
  rmSync(workspace, { recursive: true });
});

const runtime = (path: string): string => join(turnbox.root, "runtime", path);
const options = (change: (provider: Provider) => Partial<Provider> = () => ({})): SessionOptions => {
  const provider = createTurnboxProvider({ turnbox, clock: createManualClock() });
  return {
    registry: createRegistry({ ...provider, ...change(provider) }),
    store,
    clock: createManualClock(),
    onWarning: ({ message }) => void warnings.push(message),
  };
};
const requestOf = (profile: RawProfile = {}): StartRequest => ({
  sessionId: "session-1",
  workspaceId: "workspace-1",
  localRootDir: workspace,
  localAdditionalDirs: [],
  sandbox: resolveProfile({ backend: "turnbox", runtimeRootDir: runtime(""), ...profile }),
  agentCommand: "agent",
  agentEnv: {},
  permissions: "approve-all",
  resumeAcpState: "",
  excludePatterns: ["*.log"],
});
const stateNow = async () => (await store.load("session-1"))?.state;
const failing =
  (message = "it broke") =>
  async (): Promise<never> => {
    throw new SandboxError("HOST_UNREACHABLE", message);
  };

describe("a session with a provider", () => {
  it("is written down as creating, with a fresh sandbox id, before the provider is asked, and again after", async () => {
    const seen: unknown[] = [];
    const session = await startSession(
      options((provider) => ({
        prepare: async (request, call) => {
          seen.push(await stateNow());
          return await provider.prepare(request, call);
        },
      })),
      requestOf(),
    );
    expect(seen).toMatchObject([
      { state: "creating", instanceId: "", sandboxId: expect.stringMatching(/^[a-z0-9]{26}$/) },
    ]);
    expect(await stateNow()).toMatchObject({
      state: "prepared",
      instanceId: "fleet:fake:1",
      providerState: { version: 1 },
    });
    expect((await store.load("session-1"))?.status).toBe("active");
    await session.stop();
  });

  it("brings the workspace in, the files out, and destroys what is transient", async () => {
    writeFileSync(join(workspace, "noise.log"), "noise");
    const session = await startSession(options(), requestOf());
    expect(readFileSync(runtime("in.txt"), "utf8")).toBe("in");
    expect(() => readFileSync(runtime("noise.log"))).toThrow(/ENOENT/);
    await session.prepared.toolHost.writeTextFile("out.txt", "out");
    expect(await session.endTurn()).toEqual({ files: 0, bytes: 0, errors: [] });
    const { sync, state } = await session.stop();
    expect(sync).toMatchObject({ files: 2, errors: [] });
    expect(readFileSync(join(workspace, "out.txt"), "utf8")).toBe("out");
    expect(state.state).toBe("destroyed");
    expect(turnbox.sandboxes.size).toBe(0);
    expect(await session.stop()).toEqual({ sync, state });
  });

  it("syncs at the boundaries of turns where the mode says so", async () => {
    const session = await startSession(options(), requestOf({ syncMode: "turn-bidirectional" }));
    writeFileSync(join(workspace, "in.txt"), "changed here");
    expect((await session.beginTurn()).files).toBe(1);
    expect(readFileSync(runtime("in.txt"), "utf8")).toBe("changed here");
    writeFileSync(runtime("in.txt"), "changed inside");
    await session.endTurn();
    expect(readFileSync(join(workspace, "in.txt"), "utf8")).toBe("changed inside");
    await session.stop();
  });

  it("moves nothing where the mode is none", async () => {
    const session = await startSession(options(), requestOf({ syncMode: "none" }));
    expect(() => readFileSync(runtime("in.txt"))).toThrow(/ENOENT/);
    expect((await session.stop()).sync.files).toBe(0);
  });

  it("keeps a sandbox for reuse, and the next start gets it back by its id", async () => {
    const first = await startSession(options(), requestOf({ persistence: "reuse" }));
    expect((await first.stop()).state).toMatchObject({ state: "stopped", instanceId: "fleet:fake:1" });
    const second = await startSession(options(), requestOf({ persistence: "reuse" }));
    expect(second.record.state).toMatchObject({ instanceId: "fleet:fake:1", sandboxId: first.record.state.sandboxId });
    expect(turnbox.calls.filter((call) => call === "create")).toHaveLength(1);
    expect((await second.stop()).state.state).toBe("stopped");
  });

  it("destroys also what would be reused, where the profile says destroyOnStop", async () => {
    const session = await startSession(options(), requestOf({ persistence: "reuse", destroyOnStop: true }));
    expect((await session.stop()).state.state).toBe("destroyed");
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("archives by a pause and a snapshot with a name, and resumes it when it starts again", async () => {
    const session = await startSession(options(), requestOf({ persistence: "archive" }));
    expect((await session.stop()).state.state).toBe("archived");
    const kept = turnbox.sandboxes.get("fleet:fake:1");
    expect(kept).toMatchObject({ state: "paused", snapshots: [expect.stringMatching(/^archive-/)] });
    const again = await startSession(options(), requestOf({ persistence: "archive" }));
    expect(again.record.state.instanceId).toBe("fleet:fake:1");
    expect(kept?.state).toBe("active");
  });

  it("keeps the runtime whose files it could not get at a stop, and tries again when asked", async () => {
    let isBroken = true;
    const session = await startSession(
      options((provider) => ({
        syncFromRuntime: (state, sync) => (isBroken ? failing()() : provider.syncFromRuntime(state, sync)),
      })),
      requestOf(),
    );
    await expect(session.stop()).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(turnbox.sandboxes.size).toBe(1);
    expect((await store.load("session-1"))?.status).toBe("crashed");
    isBroken = false;
    expect((await session.stop()).state.state).toBe("destroyed");
  });

  it("only reports what fails in the sync after a crash, and goes on", async () => {
    const broken = options(() => ({ syncFromRuntime: failing("the host is gone") }));
    const session = await startSession(broken, requestOf());
    const { sync, state } = await session.stop({ reason: "crash" });
    expect(sync.errors).toEqual(["the host is gone"]);
    expect(warnings).toEqual([expect.stringContaining("the host is gone")]);
    expect(state.state).toBe("destroyed");
  });

  it("takes back what it made where the workspace does not go in", async () => {
    await expect(
      startSession(
        options(() => ({ syncToRuntime: failing() })),
        requestOf(),
      ),
    ).rejects.toMatchObject({
      reason: "HOST_UNREACHABLE",
    });
    expect(turnbox.sandboxes.size).toBe(0);
    expect(await stateNow()).toMatchObject({ state: "destroyed" });
  });

  it("finds and destroys by its labels what was made by a create whose answer was lost", async () => {
    turnbox.afterCreate = () => {
      throw new SandboxError("HOST_UNREACHABLE", "the answer was lost");
    };
    await expect(startSession(options(), requestOf())).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(turnbox.calls).toEqual(["list", "create", "list", "get", "destroy"]);
    expect(turnbox.sandboxes.size).toBe(0);
    expect(await stateNow()).toMatchObject({ state: "destroyed" });
  });

  it("does not touch what it kept before where it cannot be brought up now", async () => {
    await (await startSession(options(), requestOf({ persistence: "reuse" }))).stop();
    await expect(
      startSession(
        options(() => ({ prepare: failing() })),
        requestOf({ persistence: "reuse" }),
      ),
    ).rejects.toThrow();
    expect(turnbox.sandboxes.size).toBe(1);
    expect(await stateNow()).toMatchObject({ state: "stopped", instanceId: "fleet:fake:1" });
  });
});

describe("reconciling what an earlier run left", () => {
  /** Dies where the given step is, with all that was done before. */
  const crashAt = async (step: "prepare" | "nothing"): Promise<void> => {
    if (step === "nothing") {
      await startSession(options(), requestOf());
      return;
    }
    const before = options((provider) => ({
      prepare: async (request, call) => {
        await provider.prepare(request, call);
        return await new Promise<never>(() => undefined);
      },
    }));
    void startSession(before, requestOf());
    const deadline = Date.now() + 5000;
    while (turnbox.sandboxes.size === 0 && Date.now() < deadline) await new Promise(setImmediate);
  };

  it("finds by labels the runtime of a session that died before its second save, and takes it up", async () => {
    await crashAt("prepare");
    expect(await stateNow()).toMatchObject({ state: "creating", instanceId: "" });
    const secretEnv = { KEY: new Secret("hush") };
    const [outcome, ...others] = await reconcileSessions({ ...options(), secretsOf: async () => ({ secretEnv }) });
    expect(others).toEqual([]);
    if (outcome?.outcome !== "reattached") throw new Error(`it is ${String(outcome?.outcome)}`);
    expect(outcome.session.prepared.launch.secretEnv).toEqual(secretEnv);
    expect(readFileSync(runtime("in.txt"), "utf8")).toBe("in");
    expect(await stateNow()).toMatchObject({ state: "prepared", instanceId: "fleet:fake:1" });
    expect(turnbox.sandboxes.size).toBe(1);
    await outcome.session.stop();
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("takes up a session that was at work, and lets those be that had settled", async () => {
    await crashAt("nothing");
    writeFileSync(runtime("in.txt"), "the agent's");
    expect(await reconcileSessions(options())).toMatchObject([{ sessionId: "session-1", outcome: "reattached" }]);
    expect(readFileSync(runtime("in.txt"), "utf8")).toBe("the agent's");
    const settled = options();
    await (await startSession(settled, { ...requestOf({ persistence: "reuse" }), sessionId: "session-2" })).stop();
    await store.remove("session-1");
    expect(await reconcileSessions(settled)).toEqual([]);
  });

  it("brings out the files of one that cannot be taken up, and ends its runtime", async () => {
    await crashAt("nothing");
    writeFileSync(runtime("late.txt"), "late");
    expect(await reconcileSessions(options(() => ({ prepare: failing() })))).toEqual([
      { sessionId: "session-1", outcome: "ended" },
    ]);
    expect(readFileSync(join(workspace, "late.txt"), "utf8")).toBe("late");
    expect(turnbox.sandboxes.size).toBe(0);
    expect(await stateNow()).toMatchObject({ state: "destroyed" });
  });

  it("ends one that had crashed, and one that was never made is gone", async () => {
    await crashAt("nothing");
    const record = await store.load("session-1");
    if (record === undefined) throw new Error("nothing was saved");
    await store.save({ ...record, status: "crashed" });
    const never = { ...record.state, sandboxId: "never", instanceId: "", state: "creating" as const };
    await store.save({ ...record, sessionId: "session-2", state: never });
    expect(await reconcileSessions(options())).toEqual([
      { sessionId: "session-1", outcome: "ended" },
      { sessionId: "session-2", outcome: "gone" },
    ]);
    expect(turnbox.sandboxes.size).toBe(0);
  });

  it("leaves for the next time what it cannot settle, and goes on with the others", async () => {
    await crashAt("nothing");
    const record = await store.load("session-1");
    if (record === undefined) throw new Error("nothing was saved");
    await store.save({ ...record, sessionId: "session-0", state: { ...record.state, backend: "daytona" } });
    const outcomes = await reconcileSessions(options());
    expect(outcomes).toMatchObject([
      { sessionId: "session-0", outcome: "unsettled", error: { reason: "PROVIDER_NOT_REGISTERED" } },
      { sessionId: "session-1", outcome: "reattached" },
    ]);
  });
});
