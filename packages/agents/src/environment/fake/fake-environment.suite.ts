import { asEnvironment, assertCapability } from "../environment-error.ts";
import type { EnvironmentCapabilities, ExecutionEnvironment } from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import type { FakeSessions } from "./fake-sessions.suite.ts";

/** An environment in memory; capabilities are as given. */
export function createFakeEnvironment(
  provider: FakeSessions,
  given: Partial<EnvironmentCapabilities> = {},
): ExecutionEnvironment {
  const life = createSessionLife();
  const capabilities: EnvironmentCapabilities = {
    snapshots: true,
    rollback: true,
    pause: true,
    lifecycle: true,
    streamingProgress: true,
    tierRouting: false,
    isolation: "none",
    maxDurationMs: undefined,
    ...given,
  };
  let sessionId = "";
  return {
    create: (config, call) =>
      life.create(
        () =>
          asEnvironment(async () => {
            provider.create(config);
            sessionId = config.sessionId;
          }),
        call,
      ),
    pause: async (call) => {
      assertCapability(capabilities, "pause");
      await asEnvironment(() => life.inTurn("pause", () => provider.pause(sessionId), call));
    },
    resume: async (call) => {
      assertCapability(capabilities, "pause");
      await asEnvironment(() => life.inTurn("resume", async () => provider.resume(sessionId), call));
    },
    destroy: async (call) => {
      await life.destroy(async () => provider.destroy(sessionId), call);
    },
    executeTool: (request, onProgress = () => undefined, call) =>
      asEnvironment(() =>
        life.run("a tool call", (signal) => provider.execute(sessionId, request, { signal, onProgress }), call),
      ),
    state: async () => {
      if (life.phase !== "live") return STATE_OF_PHASE[life.phase];
      return provider.sessions.get(sessionId)?.state ?? "failed";
    },
    capabilities: () => capabilities,
    createSnapshot: async (name, call) => {
      assertCapability(capabilities, "snapshots");
      const id = await life.inTurn("createSnapshot", async () => provider.snapshot(sessionId), call);
      return { id, name, createdAt: new Date(0) };
    },
    rollback: async (snapshotId, call) => {
      assertCapability(capabilities, "rollback");
      await life.inTurn("rollback", async () => provider.rollback(sessionId, snapshotId), call);
    },
  };
}
