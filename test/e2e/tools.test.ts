import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { poll } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

interface Answer {
  readonly content: string;
  readonly isError?: boolean;
  readonly exitCode?: number;
  readonly tier: number;
  readonly replayed?: boolean;
  readonly blocks: readonly Record<string, unknown>[];
}

let server: TestServer;
let host: { readonly url: string; readonly token: string; readonly sessionId: string };
let calls = 0;
beforeAll(async () => {
  server = await startServer();
  const { sandboxId } = await server.json("create");
  host = (await server.json("connect", String(sandboxId))) as typeof host;
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

async function post(method: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${host.url}/turnbox.host.v1.ToolService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${host.token}` },
    body: JSON.stringify(body),
  });
  return (await response.json()) as Record<string, unknown>;
}

async function tool(toolName: string, params: Record<string, unknown>): Promise<Answer> {
  calls += 1;
  const call = { sessionId: host.sessionId, toolCallId: `tools-${calls}`, toolName, params };
  return (await post("ExecuteTool", call)) as unknown as Answer;
}
const said = async (toolName: string, params: Record<string, unknown>): Promise<string> => {
  const answer = await tool(toolName, params);
  if (answer.isError === true) throw new Error(`${toolName}: ${answer.content}`);
  return answer.content;
};

/** A PNG of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("the tools, on ZFS and gVisor", () => {
  it("are listed ready for a model", async () => {
    const { tools } = (await post("ListTools", { sessionId: host.sessionId })) as {
      tools: readonly { name: string; tier: number; readOnly?: boolean; inputSchema: Record<string, unknown> }[];
    };
    expect(tools).toHaveLength(17);
    expect(tools.filter(({ readOnly }) => readOnly === true).map(({ name }) => name)).toEqual([
      "read_file",
      "list_dir",
      "grep",
      "glob",
    ]);
    for (const { inputSchema } of tools)
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
  });

  it("make a journey: write, read, edit, search, find, and bash sees all of it (D17)", async () => {
    expect(
      await said("Write", { path: "src/app.py", content: "def add(a, b):\n    return a - b\n", create_dirs: true }),
    ).toBe("Created src/app.py (32 bytes).");
    expect(await said("bash", { cmd: "cat src/app.py" })).toBe("def add(a, b):\n    return a - b\n");
    const missed = await tool("edit_file", {
      path: "src/app.py",
      old_string: "return a-b",
      new_string: "return a + b",
    });
    expect(missed).toMatchObject({ isError: true, content: expect.stringContaining("2\t    return a - b") });
    await said("Edit", { path: "src/app.py", old_string: "a - b", new_string: "a + b" });
    expect(await said("bash", { cmd: "cat src/app.py; echo '# by bash' >> src/app.py" })).toContain("return a + b");
    expect(await said("read_file", { path: "/workspace/src/app.py" })).toBe(
      "     1\tdef add(a, b):\n     2\t    return a + b\n     3\t# by bash",
    );
    expect(await said("grep", { pattern: "return .*" })).toBe("src/app.py:2:    return a + b");
    expect(await said("glob", { pattern: "**/*.py" })).toBe("src/app.py");
    expect(await said("list_dir", { depth: 2 })).toBe("src/\nsrc/app.py (42 bytes)");
    expect(await said("bash", { cmd: "pwd; cd src && ls", cwd: "/workspace" })).toBe("/workspace\napp.py\n");
  }, 60_000);

  it("see each other's writes in the order in which they were made", async () => {
    for (let round = 0; round < 20; round += 1) {
      await said("write_file", { path: "ping", content: `${round}` });
      expect(await said("bash", { cmd: "cat ping; printf %s $(( $(cat ping) * 2 )) > pong" })).toBe(`${round}`);
      expect(await said("read_file", { path: "pong" })).toBe(`     1\t${round * 2}`);
    }
  }, 60_000);

  it("give an image as an image", async () => {
    await said("bash", { cmd: `echo ${PIXEL} | base64 -d > pixel.png` });
    const { blocks, content } = await tool("read_file", { path: "pixel.png" });
    expect(content).toBe("pixel.png: image/png, 70 bytes");
    expect(blocks).toEqual([{ text: { text: content } }, { image: { data: PIXEL, mediaType: "image/png" } }]);
  });

  it("cannot be led out of the sandbox by a link, while bash follows it inside (D16)", async () => {
    await said("bash", {
      cmd: "ln -s /etc/hostname link; ln -s ../../../../../../../root/.ssh out; ln -s /etc/shadow shadow",
    });
    expect(await tool("read_file", { path: "out" })).toMatchObject({ isError: true });
    expect(await tool("read_file", { path: "shadow" })).toMatchObject({ isError: true });
    expect(await tool("write_file", { path: "/proc/sys/kernel/hostname", content: "x" })).toMatchObject({
      isError: true,
      content: expect.stringContaining("not among the session's files"),
    });
  });

  it("leave a command in the background and say where its output is", async () => {
    const started = await said("bash", { cmd: "echo begun; sleep 60; echo never", background: true });
    const [, pid, path] = /^Process (\d+) runs in the background\. Its output goes to (\S+)\.\n$/.exec(started) ?? [];
    expect(
      await poll("the output", async () =>
        (await said("bash", { cmd: `cat ${path}` })) === "begun\n" ? "there" : undefined,
      ),
    ).toBe("there");
    expect(await said("read_file", { path })).toBe("     1\tbegun");
    expect(await said("bash", { cmd: `kill ${pid} && echo killed` })).toBe("killed\n");
  }, 60_000);

  it("say that git is missing, and which template has it (D13)", async () => {
    expect(await tool("git_status", {})).toMatchObject({
      isError: true,
      exitCode: 127,
      tier: 2,
      content: "There is no git in this sandbox. Make sandboxes from template debian, which has it.\n",
    });
  });

  it("run git inside, so that what a repository has configured runs nothing on the host (D13)", async () => {
    const marker = join(tmpdir(), `turnbox-d13-${process.pid}`);
    const git = '#!/bin/sh\necho "git of $(hostname)"\n';
    await said("write_file", { path: "/usr/local/bin/git", content: git, create_dirs: true });
    await said("bash", { cmd: "chmod +x /usr/local/bin/git" });
    const config = `[core]\n\tfsmonitor = "touch ${marker}"\n[diff]\n\texternal = "touch ${marker}"\n`;
    await said("write_file", { path: ".git/config", content: config, create_dirs: true });
    await said("bash", { cmd: "mkdir -p .git/objects .git/refs; echo ref: refs/heads/main > .git/HEAD" });
    for (const name of ["git_status", "git_diff", "git_log", "git_show"])
      expect(await tool(name, {})).toMatchObject({ tier: 2, content: "git of turnbox\n" });
    expect(existsSync(marker)).toBe(false);
    await said("bash", { cmd: "rm -rf .git /usr/local/bin/git" });
  }, 60_000);

  it("refuse what is not in the catalog, by name", async () => {
    expect(await tool("rm_rf", {})).toMatchObject({ code: "not_found" });
    expect(await tool("read_file", { file_path: "a" })).toMatchObject({ code: "invalid_argument" });
    expect(await tool("git_log", { ref: "--output=x" })).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("params.ref"),
    });
  });
});
