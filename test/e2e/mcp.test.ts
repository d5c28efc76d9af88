import { spawn } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type McpTestClient,
  openHttpClient,
  openStdioClient,
  textOf,
} from "../../packages/agents/src/mcp/mcp-client.suite.ts";
import { createSandbox, destroySandbox, listSandboxes } from "../support/control-calls.ts";
import { ended, poll, REPO, run } from "../support/process.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");
const INSPECTOR = join(REPO, "node_modules/.bin/mcp-inspector-cli");

/** It looks for its own manifest in the directory above the one that it is started in. */
const INSPECTOR_CWD = join(REPO, "packages");

let server: TestServer;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  server = await startServer();
  env = environment(server.home, { TURNBOX_PORT: new URL(server.url).port });
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

/** How many sandboxes there are that the server of the protocol has made; what is being removed does not count. */
async function madeCount(): Promise<number> {
  const { sandboxes } = await listSandboxes(server, { "made-by": "turnbox-mcp" });
  return sandboxes.filter(({ state }) => !state.includes("DESTROYING")).length;
}
const allGone = () => poll("the sandboxes to go", async () => ((await madeCount()) === 0 ? true : undefined));

/** What an agent does: it works, seals, breaks something, and goes back. */
async function workAndGoBack({ call }: McpTestClient): Promise<void> {
  const wrote = await call("bash", { cmd: "echo precious > kept.txt && dmesg | head -1" });
  expect(wrote.isError).toBe(false);
  expect(textOf(wrote)).toContain("gVisor");
  const sealed = await call("turn", { note: "the file is written" });
  expect(sealed.structuredContent).toMatchObject({ turn: 1, unchanged: false });

  const broken = await call("bash", { cmd: "rm kept.txt; cat kept.txt" });
  expect(broken.isError).toBe(true);
  expect(textOf(broken)).toContain("[exit code 1]");

  const back = await call("rollback", { to: 1 });
  expect(back.structuredContent).toMatchObject({ to: 1, generation: 2 });
  expect(textOf(await call("bash", { cmd: "cat kept.txt" }))).toBe("precious\n");
  expect(textOf(await call("turns"))).toContain("the file is written");
}

describe("turnbox mcp on stdin and stdout", () => {
  it("serves the official client, and leaves no sandbox behind", async () => {
    {
      await using mcp = await openStdioClient({ command: process.execPath, args: [CLI, "mcp"], env });
      const { tools } = await mcp.client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(
        expect.arrayContaining(["bash", "read_file", "edit_file", "grep", "git_commit", "turn", "fork"]),
      );
      // Listing is not using.
      expect(await madeCount()).toBe(0);
      await workAndGoBack(mcp);

      await mcp.call("undo");
      expect(textOf(await mcp.call("diff", { from: 1 }))).toMatch(/removed \S*kept\.txt/);
      expect(textOf(await mcp.call("bash", { cmd: "true" }))).toBe("[no output]");
      expect((await mcp.call("read_file", { path: "kept.txt" })).isError).toBe(true);
      const forked = await mcp.call("fork", { from: "1" });
      const [fork] = forked.structuredContent?.["sandboxes"] as readonly string[];
      await mcp.call("use_sandbox", { sandbox: fork });
      expect(textOf(await mcp.call("read_file", { path: "kept.txt" }))).toContain("precious");
      expect(await madeCount()).toBe(2);
    }
    await allGone();
  }, 120_000);

  it("reports the output of a command while it runs, and kills it when it is cancelled", async () => {
    const { sandboxId } = await createSandbox(server, { template: "mini" });
    await using mcp = await openStdioClient({
      command: process.execPath,
      args: [CLI, "mcp", "--sandbox", sandboxId, "--auto-turn"],
      env,
    });
    const cancelling = new AbortController();
    const call = mcp.client.callTool({ name: "bash", arguments: { cmd: "echo begun; sleep 4242" } }, undefined, {
      signal: cancelling.signal,
      onprogress: ({ message }) => {
        if (message === "begun") cancelling.abort("enough");
      },
    });
    await expect(call).rejects.toThrow("enough");
    await poll("the command to be killed", async () =>
      textOf(await mcp.call("bash", { cmd: "ps" })).includes("sleep 4242") ? undefined : true,
    );
    expect(textOf(await mcp.call("bash", { cmd: "echo more > file" }))).toMatch(/\[turn \d+ is sealed\]/);
    await destroySandbox(server, sandboxId);
  }, 120_000);
});

describe("turnbox mcp over HTTP", () => {
  it("serves those who have the token, under its own name only", async () => {
    const child = spawn(process.execPath, [CLI, "mcp", "--http", "--json"], { env, stdio: ["ignore", "pipe", "pipe"] });
    const exit = ended(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    try {
      const line = await poll("the address", () => {
        if (child.exitCode !== null) throw new Error(`turnbox mcp ended: ${output}`);
        return /^\{.*\}$/m.exec(output)?.[0];
      });
      const { url, token } = JSON.parse(line) as { readonly url: string; readonly token: string };

      expect(await statusOf(url, {})).toBe(401);
      expect(await statusOf(url, { Authorization: `Bearer ${token}`, Host: "evil.example" })).toBe(403);
      expect(await statusOf(url, { Authorization: `Bearer ${token}`, Origin: "http://evil.example" })).toBe(403);
      await expect(openHttpClient(url, "not-the-token-of-it")).rejects.toThrow();

      const mcp = await openHttpClient(url, token);
      await workAndGoBack(mcp);
      await mcp[Symbol.asyncDispose]();
      await allGone();

      // One whose client is still there ends with the server.
      const other = await openHttpClient(url, token);
      await other.call("bash", { cmd: "true" });
      expect(await madeCount()).toBe(1);
      child.kill("SIGTERM");
      expect(await exit).toBe(0);
      await allGone();
      await other.client.close();
    } finally {
      child.kill("SIGKILL");
      await exit;
    }
  }, 120_000);
});

async function statusOf(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe("the official inspector", () => {
  it("lists the tools and calls one", async () => {
    const inspect = async (...args: readonly string[]) => {
      const result = await run(INSPECTOR, ["--cli", process.execPath, CLI, "mcp", ...args], {
        env,
        cwd: INSPECTOR_CWD,
      });
      if (result.exitCode !== 0) throw new Error(`exit ${result.exitCode}: ${result.stdout}${result.stderr}`);
      return JSON.parse(result.stdout) as Readonly<Record<string, unknown>>;
    };
    const { tools } = await inspect("--method", "tools/list");
    expect(tools).toEqual(expect.arrayContaining([expect.objectContaining({ name: "rollback" })]));
    const called = ["--method", "tools/call", "--tool-name", "bash", "--tool-arg", "cmd=echo from the inspector"];
    expect(await inspect(...called)).toMatchObject({ content: [{ type: "text", text: "from the inspector\n" }] });
  }, 120_000);
});
