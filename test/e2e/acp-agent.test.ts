import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { AskPermission } from "../../packages/agents/src/provider/acp/agent-permissions.ts";
import { runAgentInSandbox } from "../../packages/agents/src/provider/acp/run-agent-in-sandbox.ts";
import type { Sandbox } from "../../packages/client/src/sandbox/sandbox.ts";
import { Turnbox } from "../../packages/client/src/turnbox/turnbox.ts";
import { type CutProxy, startCutProxy } from "../support/cut-proxy.ts";
import { AGENTS, installNode } from "../support/node-template.ts";
import { startServer, type TestServer } from "../support/server.ts";

type Asked = Parameters<AskPermission>[0];

const TIMEOUT_MS = 120_000;

let server: TestServer;
let proxy: CutProxy;
let turnbox: Turnbox;
/** Its model takes a while: it works beside the other one. */
let example: ReturnType<typeof runExample>;

beforeAll(async () => {
  [server, proxy] = await Promise.all([startServer(), startCutProxy()]);
  turnbox = Turnbox.connect({ url: server.url, token: server.token, connect: proxy.connect });
  await installNode(server);
  example = runExample();
  example.catch(() => undefined);
}, TIMEOUT_MS);

afterAll(async () => {
  await example.catch(() => undefined);
  turnbox.close();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
}, TIMEOUT_MS);

/** A turn of the agent that the protocol's SDK was published with. */
async function runExample() {
  await using sandbox = await turnbox.create({ template: "node" });
  const asked: Asked[] = [];
  const updates: string[] = [];
  await using agent = await runAgentInSandbox(sandbox, {
    command: "node",
    args: [AGENTS.example],
    onUpdate: ({ update }) => updates.push(update.sessionUpdate),
    onPermission: (request) => {
      asked.push(request);
      return "allow-once";
    },
  });
  return { result: await agent.prompt("Improve the project"), asked, updates };
}

const running = async (sandbox: Sandbox): Promise<readonly string[]> =>
  (await sandbox.processes.list()).filter(({ state }) => state !== "exited").map(({ args }) => args.at(-1) ?? "");

describe("an agent in a sandbox", () => {
  it(
    "completes turns over cut connections, with the sandbox's files and commands, and each turn is sealed",
    async () => {
      await using sandbox = await turnbox.create({ template: "node" });
      await sandbox.files.write("input.txt", "first\nsecond\n");
      const cuts: number[] = [];
      const asked: Asked[] = [];
      const agent = await runAgentInSandbox(sandbox, {
        command: "node",
        args: [AGENTS.scripted],
        onUpdate: () => cuts.push(proxy.cut()),
        onPermission: (request) => {
          asked.push(request);
          return "allow-once";
        },
      });
      expect(await running(sandbox)).toEqual([AGENTS.scripted]);

      const worked = await agent.prompt("work");
      expect(worked.text).toBe("Reading. Wrote SECOND and counted, exit 0.");
      expect(worked).toMatchObject({ stopReason: "end_turn", turn: { number: 1 } });
      // It asked for the edit; the command that nobody had allowed was asked for in its place.
      expect(asked.map(({ toolCall }) => toolCall.kind)).toEqual(["edit", "execute"]);
      expect(cuts.every((open) => open > 0)).toBe(true);
      expect((await sandbox.bash("cat out/result.txt out/note.txt")).stdout).toBe("SECOND\nnoted");

      await expect(agent.prompt("read /etc/shadow")).rejects.toThrow("outside of /workspace");
      await sandbox.files.write("half-done.txt", "x");
      await expect(agent.prompt("die")).rejects.toMatchObject({
        reason: "OUTCOME_UNKNOWN",
        message: expect.stringContaining("last words"),
      });
      expect((await sandbox.turns()).map(({ outcome }) => outcome)).toEqual(["succeeded", "failed"]);
      await agent[Symbol.asyncDispose]();
      expect(await running(sandbox)).toEqual([]);
      expect((await sandbox.bash("ls -A /tmp")).stdout).toBe("");
    },
    TIMEOUT_MS,
  );

  it(
    "may be one from npm: the published example agent completes its turn, and gets nothing outside of the root",
    async () => {
      const { result, asked, updates } = await example;
      expect(result).toMatchObject({ stopReason: "end_turn", turn: { number: 1 } });
      expect(result.text).toContain("I'll help you with that.");
      expect(updates).toContain("tool_call");
      // What it wants to edit is in nobody's project: nobody is bothered with it.
      expect(asked).toEqual([]);
      expect(result.text).toMatch(/skip/i);
    },
    TIMEOUT_MS,
  );
});
