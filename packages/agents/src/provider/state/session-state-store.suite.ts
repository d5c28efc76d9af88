import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Secret } from "@turnbox/client";
import { resolveProfile } from "../profile/resolve-profile.ts";
import { type SessionRecord, toStoredProfile } from "./session-record.ts";
import type { SessionStateStore } from "./session-state-store.ts";

export function recordOf(sessionId: string, changes: Partial<SessionRecord> = {}): SessionRecord {
  const sandbox = resolveProfile({ backend: "turnbox", env: { A: "b" }, secretEnv: { KEY: new Secret("hush-hush") } });
  return {
    sessionId,
    workspaceId: "workspace",
    status: "active",
    localRootDir: "/home/me/project",
    localAdditionalDirs: ["/home/me/more"],
    sandbox: toStoredProfile(sandbox),
    agentCommand: "agent --acp",
    permissions: "approve-reads",
    resumeAcpState: "",
    excludePatterns: ["*.log"],
    state: {
      sandboxId: "sandbox-1",
      backend: "turnbox",
      profile: "default",
      state: "prepared",
      instanceId: "fleet:local-1:abc",
      runtimeRootDir: "/workspace",
      runtimeAdditionalDirs: ["/additional/1-more"],
      providerState: { version: 1, anything: { of: ["the", "provider"] } },
      sshAccessExpiresAt: new Date("2026-01-01T00:00:00Z"),
      preparedAt: new Date("2026-01-01T00:00:01Z"),
    },
    updatedAt: new Date("2026-01-01T00:00:02Z"),
    ...changes,
  };
}

/** What every store of sessions does. */
export function describeSessionStateStore(name: string, create: () => SessionStateStore & Partial<Disposable>): void {
  describe(name, () => {
    let store: SessionStateStore & Partial<Disposable>;
    beforeEach(() => {
      store = create();
    });
    afterEach(() => {
      store[Symbol.dispose]?.();
    });

    it("gives back what was saved, dates and the provider's own part included, and replaces it", async () => {
      expect(await store.load("one")).toBeUndefined();
      await store.save(recordOf("one"));
      expect(await store.load("one")).toEqual(recordOf("one"));
      const bare = {
        ...recordOf("one").state,
        providerState: undefined,
        sshAccessExpiresAt: undefined,
        preparedAt: undefined,
      };
      await store.save(recordOf("one", { status: "stopped", state: bare }));
      expect(await store.load("one")).toEqual(recordOf("one", { status: "stopped", state: bare }));
    });

    it("lists all, and forgets what is removed, once or twice", async () => {
      await store.save(recordOf("two"));
      await store.save(recordOf("one"));
      expect((await store.list()).map(({ sessionId }) => sessionId)).toEqual(["one", "two"]);
      await store.remove("one");
      await store.remove("one");
      expect((await store.list()).map(({ sessionId }) => sessionId)).toEqual(["two"]);
    });

    it("keeps no secret: only the names of the variables", async () => {
      await store.save(recordOf("one"));
      const kept = await store.load("one");
      expect(JSON.stringify(kept)).not.toContain("hush");
      expect(kept?.sandbox.secretEnvNames).toEqual(["KEY"]);
    });

    it("does nothing for a caller who has gone", async () => {
      const options = { signal: AbortSignal.abort() };
      await expect(store.save(recordOf("one"), options)).rejects.toThrow();
      await expect(store.list(options)).rejects.toThrow();
      expect(await store.load("one")).toBeUndefined();
    });
  });
}
