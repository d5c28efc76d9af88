import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { installDebian } from "../support/debian-template.ts";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let id: string;

beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

/** Where tools are called: straight at the host, with a token for this one sandbox. */
let host: { readonly url: string; readonly token: string; readonly sessionId: string };

interface Answer {
  readonly content: string;
  readonly exitCode: number | null;
  readonly isError: boolean;
}

/** Calls a tool as a model's loop does. */
async function tool(toolName: string, params: Readonly<Record<string, unknown>>): Promise<Answer> {
  const { url, token, sessionId } = host;
  const response = await fetch(`${url}/turnbox.host.v1.ToolService/ExecuteTool`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ sessionId, toolCallId: randomUUID(), toolName, params }),
    signal: AbortSignal.timeout(120_000),
  });
  const answer = (await response.json()) as Partial<Answer> & { readonly message?: string };
  if (!response.ok) throw new Error(`${toolName}: ${String(answer.message)}`);
  return { content: answer.content ?? "", exitCode: answer.exitCode ?? null, isError: answer.isError ?? false };
}

/** The same, and it has to do what it was asked for. */
async function done(name: string, params: Readonly<Record<string, unknown>>): Promise<string> {
  const { content, exitCode, isError } = await tool(name, params);
  if (isError || (exitCode ?? 0) !== 0) throw new Error(`${name}: exit ${String(exitCode)}: ${content}`);
  return content;
}

const CODE = `def mean(numbers):
    return sum(numbers) / len(numbers)
`;
const FIRST_TEST = `import unittest

from stats import mean


class MeanTest(unittest.TestCase):
    def test_of_some(self):
        self.assertEqual(mean([1, 2, 6]), 3)


if __name__ == "__main__":
    unittest.main()
`;
const SECOND_TEST = `    def test_of_none(self):
        self.assertEqual(mean([]), 0)
`;
const cwd = "/workspace/stats";
const unittest = () => tool("bash", { cmd: "python3 -m unittest 2>&1", cwd });

describe("a coding session in template debian", () => {
  it("gets the template by the command line", async () => {
    await installDebian(server);
    id = String((await server.json("create", "--template", "debian", "--name", "coding"))["sandboxId"]);
    host = (await server.json("connect", id)) as unknown as typeof host;
  }, 600_000);

  it("clones, sees a test fail, mends the code, commits, seals turns and goes back", async () => {
    // A repository that others push to, with one commit.
    const seed = "/tmp/seed";
    await done("write_file", { path: `${seed}/stats.py`, content: CODE, create_dirs: true });
    await done("write_file", { path: `${seed}/test_stats.py`, content: FIRST_TEST });
    await done("write_file", { path: `${seed}/.gitignore`, content: "__pycache__/\n" });
    await done("bash", { cmd: "git init -q -b main && git init -q --bare -b main /srv/stats.git", cwd: seed });
    await done("git_add", { paths: ["."], cwd: seed });
    await done("git_commit", { message: "Mean of some numbers", cwd: seed });
    await done("git_push", { remote: "/srv/stats.git", branch: "main", cwd: seed });

    await done("git_clone", { url: "/srv/stats.git" });
    expect(await done("list_dir", { path: "stats" })).toContain("test_stats.py");
    expect(await done("git_status", { cwd })).toBe("## main...origin/main\n");
    expect(await unittest()).toMatchObject({ exitCode: 0, content: expect.stringContaining("OK") });

    // A test that the code does not pass.
    await done("edit_file", {
      path: "stats/test_stats.py",
      old_string: "\n\nif __name__",
      new_string: `\n${SECOND_TEST}\n\nif __name__`,
    });
    const red = await unittest();
    expect(red.exitCode).toBe(1);
    expect(red.content).toContain("ZeroDivisionError");
    expect(red.content).toContain("FAILED (errors=1)");
    const before = await server.json("turn", id, "--key", "red", "--outcome", "failed");

    expect(await done("grep", { pattern: "len\\(", path: "stats" })).toContain("stats/stats.py:2:");
    expect(await done("read_file", { path: "stats/stats.py" })).toContain("return sum(numbers)");
    await done("edit_file", {
      path: "stats/stats.py",
      old_string: "sum(numbers) / len(numbers)",
      new_string: "sum(numbers) / len(numbers) if numbers else 0",
    });
    expect(await unittest()).toMatchObject({ exitCode: 0, content: expect.stringContaining("Ran 2 tests") });
    expect(await done("git_diff", { cwd })).toContain("+    return sum(numbers) / len(numbers) if numbers else 0");
    await done("git_add", { paths: ["stats.py", "test_stats.py"], cwd });
    await done("git_commit", { message: "Mean of nothing is 0", cwd });
    await done("git_push", { cwd });
    const log = await done("git_log", { cwd });
    expect(log).toMatch(/Mean of nothing is 0[^]*Mean of some numbers/);
    const green = await server.json("turn", id, "--key", "green");
    expect(green).toMatchObject({ turnNumber: 2, unchanged: false });

    // What comes next is a mistake.
    await done("bash", { cmd: "rm -rf stats /srv/stats.git && git init -q stats" });
    expect((await tool("bash", { cmd: "cat stats.py", cwd })).exitCode).toBe(1);
    await server.json("rollback", id, String(green["snapshotId"]));
    expect(await done("git_status", { cwd })).toBe("## main...origin/main\n");
    expect(await done("git_log", { cwd })).toBe(log);
    expect(await done("git_log", { cwd: "/srv/stats.git" })).toContain("Mean of nothing is 0");
    expect(await unittest()).toMatchObject({ exitCode: 0 });

    // Back to the failing test, and forward again.
    await server.json("rollback", id, String(before["snapshotId"]));
    expect(await unittest()).toMatchObject({ exitCode: 1, content: expect.stringContaining("ZeroDivisionError") });
    expect(await done("git_log", { cwd })).not.toContain("Mean of nothing is 0");
    await server.json("undo", id);
    expect(await unittest()).toMatchObject({ exitCode: 0, content: expect.stringContaining("Ran 2 tests") });
  }, 240_000);
});
