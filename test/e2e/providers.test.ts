import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  createFileSessionStateStore,
  createRegistry,
  createTurnboxProvider,
  reconcileSessions,
  resolveProfile,
  type SessionOptions,
  type StartRequest,
  startSession,
} from "@turnbox/agents";
import { Turnbox } from "@turnbox/client";
import { describeProvider } from "../../packages/agents/src/provider/provider.suite.ts";
import { poll } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let turnbox: Turnbox;
let base: string;
beforeAll(async () => {
  server = await startServer();
  turnbox = Turnbox.connect({ url: server.url, token: server.token });
  base = mkdtempSync(join(tmpdir(), "turnbox-providers-"));
}, 120_000);
afterAll(async () => {
  turnbox.close();
  await server[Symbol.asyncDispose]();
  rmSync(base, { recursive: true });
}, 120_000);

describeProvider({
  name: "turnbox on a real server",
  backend: "turnbox",
  make: () => createTurnboxProvider({ turnbox }),
  timeoutMs: 120_000,
});

describe("a session in a real sandbox", () => {
  const workspace = (): string => join(base, "workspace");
  const options = (): SessionOptions => ({
    registry: createRegistry(createTurnboxProvider({ turnbox })),
    store: createFileSessionStateStore(join(base, "sessions")),
  });
  const request = (persistence: string): StartRequest => ({
    sessionId: "session-1",
    workspaceId: "workspace-1",
    localRootDir: workspace(),
    localAdditionalDirs: [],
    sandbox: resolveProfile({ backend: "turnbox", persistence, runtimeRootDir: "/srv/project", env: { MODE: "test" } }),
    agentCommand: "sh -c true",
    agentEnv: {},
    permissions: "approve-all",
    resumeAcpState: "",
  });

  it("survives a crash of the program between making and saving, keeps hostile files out, and is archived", async () => {
    mkdirSync(workspace());
    writeFileSync(join(workspace(), "in.txt"), "in");

    // The program dies after the sandbox was made: what is saved is what was saved before.
    const lost = options();
    const dying: SessionOptions = {
      ...lost,
      registry: createRegistry({
        ...lost.registry.provider("turnbox"),
        prepare: async (wanted, call) => {
          await lost.registry.provider("turnbox").prepare(wanted, call);
          return await new Promise<never>(() => undefined);
        },
      }),
    };
    void startSession(dying, request("archive"));
    await poll("the sandbox", async () => {
      const { sandboxes } = await turnbox.list({ labels: { "turnbox.session-id": "session-1" } });
      return sandboxes.find(({ state }) => state === "active");
    });

    const [found] = await reconcileSessions(options());
    if (found?.outcome !== "reattached") throw new Error(`it is ${JSON.stringify(found)}`);
    const { session } = found;
    const sandbox = await turnbox.get(session.record.state.instanceId);
    const script =
      "cat in.txt; printf out > out.txt; ln -s /etc/passwd leak; ln -s ../../etc up; mkdir -p .git/hooks; printf x > .git/hooks/post-checkout";
    expect(await sandbox.bash(script, { cwd: "/srv/project" })).toMatchObject({ ok: true, stdout: "in" });

    const { sync, state } = await session.stop();
    expect(sync.errors).toEqual([expect.stringMatching(/leak.*absolute/), expect.stringMatching(/up.*outside/)]);
    expect(readdirSync(workspace()).sort()).toEqual([".git", "in.txt", "out.txt"]);
    expect(readFileSync(join(workspace(), "out.txt"), "utf8")).toBe("out");
    expect(readdirSync(join(workspace(), ".git"))).toEqual([]);

    expect(state.state).toBe("archived");
    expect((await sandbox.info()).state).toBe("paused");
    expect((await sandbox.snapshots()).map(({ name }) => name)).toContainEqual(expect.stringMatching(/^archive-/));
    const again = await startSession(options(), request("transient"));
    expect(again.record.state.instanceId).toBe(sandbox.id);
    expect((await again.stop()).state.state).toBe("destroyed");
    const { sandboxes } = await turnbox.list();
    expect(sandboxes.filter((one) => one.state !== "destroying")).toEqual([]);
  }, 120_000);
});
