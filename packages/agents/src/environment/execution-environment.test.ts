import { describe, expect, it } from "@jest/globals";
import { type EnvironmentHarness, environmentSuite, reasonOf } from "./environment.suite.ts";
import { createFakeEnvironment } from "./fake/fake-environment.suite.ts";
import { createFakeSessions } from "./fake/fake-sessions.suite.ts";

let sessions = 0;
const nextId = (): string => {
  sessions += 1;
  return `s${String(sessions)}`;
};

const open = async (given: Parameters<typeof createFakeEnvironment>[1] = {}): Promise<EnvironmentHarness> => {
  const provider = createFakeSessions();
  return {
    environment: () => createFakeEnvironment(provider, given),
    config: () => ({ sessionId: nextId() }),
    failingConfig: () => ({ sessionId: nextId(), baseImage: "nope" }),
    sessionCount: async () => provider.sessions.size,
    [Symbol.asyncDispose]: async () => undefined,
  };
};

environmentSuite("in memory", () => open());
environmentSuite("in memory, with few capabilities", () => open({ pause: false, snapshots: false, rollback: false }));

describe("an environment's errors", () => {
  it("are the environment's own where a provider has others for the same thing", async () => {
    const provider = createFakeSessions({ maxSessions: 1 });
    const first = createFakeEnvironment(provider);
    await first.create({ sessionId: "one" });
    expect(await reasonOf(createFakeEnvironment(provider).create({ sessionId: "two" }))).toBe("SESSION_LIMIT_REACHED");
    provider.sessions.delete("one");
    expect(await reasonOf(first.pause())).toBe("SESSION_NOT_FOUND");
    expect(await first.state()).toBe("failed");
  });
});
