import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { newSessionId } from "@turnbox/core";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { connectHost, connectTurnbox, type HostClients } from "../../packages/client/src/client.ts";
import { environmentSuite, reasonOf, toolRequest } from "../../packages/agents/src/environment/environment.suite.ts";
import { createNativeSandboxEnvironment } from "../../packages/agents/src/environment/native/native-sandbox-environment.ts";
import { createProviderEnvironment } from "../../packages/agents/src/environment/provider/provider-environment.ts";
import { resolveProfile } from "../../packages/agents/src/provider/profile/resolve-profile.ts";
import { createRegistry } from "../../packages/agents/src/provider/registry.ts";
import { createFileSessionStateStore } from "../../packages/agents/src/provider/state/file-session-state-store.ts";
import { createTurnboxProvider } from "../../packages/agents/src/provider/turnbox/turnbox-provider.ts";
import { Turnbox } from "../../packages/client/src/turnbox/turnbox.ts";
import { listInstances } from "../support/control-calls.ts";
import { startServer, type TestServer } from "../support/server.ts";

const TIMEOUT_MS = 120_000;
const PRESENT = [SessionState.CREATING, SessionState.ACTIVE, SessionState.PAUSED, SessionState.FAILED];

let server: TestServer;
let host: HostClients;

beforeAll(async () => {
  server = await startServer();
  const [instance] = await listInstances(server);
  if (instance === undefined) throw new Error("the server has no host");
  host = connectHost({ url: instance.url, token: server.token });
}, TIMEOUT_MS);

afterAll(async () => {
  host.close();
  await server[Symbol.asyncDispose]();
}, TIMEOUT_MS);

environmentSuite(
  "native, on a real host over zfs and gVisor",
  async () => ({
    environment: () => createNativeSandboxEnvironment({ host }),
    config: () => ({ sessionId: newSessionId(), labels: { from: "environment" } }),
    failingConfig: () => ({ sessionId: newSessionId(), baseImage: "no-such-template" }),
    sessionCount: async () => {
      const selector = { matchLabels: { from: "environment" } };
      return (await host.sessions.listSessions({ states: PRESENT, selector })).sessions.length;
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
  { timeoutMs: TIMEOUT_MS },
);

describe("a native sandbox on a real host", () => {
  it(
    "runs tools in a sandbox that the orchestrator made, with the token of that sandbox alone",
    async () => {
      using turnbox = Turnbox.connect(server);
      await using sandbox = await turnbox.create();
      using control = connectTurnbox(server);
      const { url, token, sessionId } = await control.sandboxes.connectSandbox({ sandboxId: sandbox.id });
      using clients = connectHost({ url, token });
      const environment = createNativeSandboxEnvironment({ host: clients });
      await environment.attachSession(sessionId);
      expect(environment.capabilities()).toMatchObject({ isolation: "gvisor", tierRouting: true, lifecycle: false });
      await environment.executeTool(toolRequest("write_file", { path: "note", content: "shared\n" }));
      expect(await sandbox.files.readText("note")).toBe("shared\n");
      expect(await reasonOf(environment.destroy())).toBe("CAPABILITY_NOT_SUPPORTED");
      expect(await environment.state()).toBe("active");
    },
    TIMEOUT_MS,
  );
});

describe("an environment over the turnbox provider", () => {
  it(
    "fills a real sandbox with the workspace, runs tools in it, and brings the files out when it is destroyed",
    async () => {
      const parent = await realpath(await mkdtemp(join(tmpdir(), "turnbox-e2e-")));
      try {
        const localRootDir = join(parent, "workspace");
        await mkdir(localRootDir);
        await writeFile(join(localRootDir, "in.txt"), "from the workspace\n");
        using turnbox = Turnbox.connect(server);
        await using provider = createTurnboxProvider({ turnbox });
        const environment = createProviderEnvironment({
          registry: createRegistry(provider),
          store: createFileSessionStateStore(join(parent, "state")),
          profile: resolveProfile({ backend: "turnbox" }),
          localRootDir,
        });
        await environment.create({ sessionId: newSessionId() });
        const run = (tool: string, params: Readonly<Record<string, unknown>>) =>
          environment.executeTool(toolRequest(tool, params));
        expect((await run("bash", { cmd: "cat in.txt; echo no >&2; exit 4" })).exitCode).toBe(4);
        expect((await run("glob", { pattern: "*.txt" })).content).toBe("in.txt");
        await run("write_file", { path: "out.txt", content: "from the sandbox\n" });
        expect(environment.capabilities()).toMatchObject({ isolation: "provider" });
        await environment.destroy();
        expect(await readFile(join(localRootDir, "out.txt"), "utf8")).toBe("from the sandbox\n");
        expect((await turnbox.list()).sandboxes.filter(({ state }) => state !== "destroying")).toEqual([]);
      } finally {
        await rm(parent, { recursive: true });
      }
    },
    TIMEOUT_MS,
  );
});

describe("the verbs of an engine", () => {
  it(
    "work on the handle of a real sandbox",
    async () => {
      using turnbox = Turnbox.connect(server);
      await using sandbox = await turnbox.create({ name: "engine", ttlMs: 3_600_000 });
      expect((await turnbox.get("engine")).id).toBe(sandbox.id);
      expect((await turnbox.list()).sandboxes.map(({ id }) => id)).toContain(sandbox.id);

      await sandbox.files.makeDirectory("made");
      await sandbox.files.write("made/$(id) '; touch pwned", "content");
      expect((await sandbox.files.list("made")).map(({ name }) => name)).toEqual(["$(id) '; touch pwned"]);
      expect(await sandbox.files.readText("made/$(id) '; touch pwned")).toBe("content");
      await sandbox.files.remove("made", { recursive: true });
      expect((await sandbox.files.list(".")).map(({ name }) => name)).toEqual([]);
      expect(await sandbox.bash("echo out; echo err >&2; exit 3")).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exitCode: 3,
      });
      const chunks: string[] = [];
      for await (const { data } of sandbox.bashStream("echo streamed")) chunks.push(Buffer.from(data).toString());
      expect(chunks.join("")).toBe("streamed\n");

      const snapshot = await sandbox.snapshot("kept");
      expect((await sandbox.snapshots({ kinds: ["named"] })).map(({ id }) => id)).toEqual([snapshot.id]);
      await sandbox.deleteSnapshot(snapshot.id);
      expect(await sandbox.snapshots({ kinds: ["named"] })).toEqual([]);

      await sandbox.processes.launch("sleep", { args: ["600"] });
      expect((await sandbox.pause()).state).toBe("paused");
      expect((await sandbox.resume()).state).toBe("active");
      expect((await sandbox.processes.list()).map(({ state }) => state)).toEqual(["running"]);
      const stats = await sandbox.stats();
      expect([stats.pids > 0, stats.memoryBytes > 0, stats.memoryLimitBytes > 0]).toEqual([true, true, true]);
      const leftMs = ((await sandbox.extend(7_200_000)).expiresAt?.getTime() ?? 0) - Date.now();
      expect([leftMs > 3_600_000, leftMs <= 7_200_000]).toEqual([true, true]);
      await sandbox.destroy();
      expect(await reasonOf(sandbox.bash("true"))).toMatch(/_NOT_FOUND|_DESTROYING$/);
    },
    TIMEOUT_MS,
  );
});

describe("a sandbox that is restored from a snapshot", () => {
  it(
    "is a new one with the config, the environment and the time to live of the old one (D39)",
    async () => {
      using turnbox = Turnbox.connect(server);
      await using sandbox = await turnbox.create({
        labels: { team: "red" },
        env: { GREETING: "hello" },
        resources: { memoryBytes: 256 * 1024 * 1024 },
        quotaBytes: 64 * 1024 * 1024,
        ttlMs: 3_600_000,
        idleTimeoutMs: 1_800_000,
        onTimeout: "pause",
        network: { allowOutbound: true, allowList: ["192.31.196.0/24"] },
      });
      await sandbox.bash("echo one > file");
      const snapshot = await sandbox.snapshot("one");
      await sandbox.bash("echo two > file");
      await using restored = await sandbox.restore(snapshot.id);
      expect(restored.id).not.toBe(sandbox.id);
      expect((await restored.bash("cat file; echo $GREETING")).stdout).toBe("one\nhello\n");
      const [before, after] = await Promise.all([sandbox.info(), restored.info()]);
      expect(after).toMatchObject({ labels: { team: "red" }, onTimeout: "pause", base: before.base });
      const leftMs = (after.expiresAt?.getTime() ?? 0) - Date.now();
      expect([leftMs > 3_000_000, leftMs <= 3_600_000]).toEqual([true, true]);
      expect(await restored.network.policy()).toEqual(await sandbox.network.policy());
      const config = async ({ sessionId }: { readonly sessionId: string }) => {
        const { session } = await host.sessions.getSession({ sessionId });
        return [session?.resources, session?.quotaBytes, session?.idleTimeout];
      };
      expect(await config(restored)).toEqual(await config(sandbox));
      await sandbox.destroy();
      expect((await restored.bash("cat file")).stdout).toBe("one\n");
    },
    TIMEOUT_MS,
  );
});
