import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { poll, REPO, run } from "../support/process.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

const clientEnvironment = (): NodeJS.ProcessEnv => environment(server.home, { TURNBOX_PORT: new URL(server.url).port });

/** Runs an example as its reader does, and answers with the lines that it printed. */
async function example(name: string): Promise<readonly string[]> {
  const env = clientEnvironment();
  const { exitCode, stdout, stderr } = await run(process.execPath, [`examples/${name}.ts`], { env });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout.trimEnd().split("\n");
}

describe("the examples", () => {
  it("drive a scripted agent through turns, and take a failed step back", async () => {
    expect(await example("agent-loop")).toEqual([
      "model: I have 17 tools",
      "turn 2 passes",
      expect.stringContaining('model: I am told "Created greet.sh'),
      "turn 3 fails, back to turn 2",
      expect.stringContaining("model: I am told"),
      "turn 4 passes",
      expect.stringContaining("model: I am told"),
      'turn 3 had: echo "hello stranger"',
      'now it is: echo "hello ${1:-stranger}"',
    ]);
  }, 120_000);

  it("race candidate fixes in forks, and destroy those that lost", async () => {
    const lines = await example("fork-and-race");
    expect(lines.slice(0, 3)).toEqual([
      "the tests fail",
      "candidate 3 of 3 wins",
      "sandboxes left: 2, the project and the winner",
    ]);
    expect(lines).toContain("-[ $(($1 % 4)) = 0 ]");
  }, 120_000);

  it("find the turn that broke the test by halves", async () => {
    const lines = await example("bisect-turns");
    expect(lines.filter((line) => /^turn \d+ (passes|fails)$/.test(line)).length).toBeLessThan(4);
    expect(lines).toContain("turn 6 broke the test:");
    expect(lines).toContain("+greet() { echo hallo; }");
  }, 120_000);

  it("read on in the output of a long process after a reconnect, without a gap", async () => {
    expect(await example("long-process")).toEqual([
      ...[1, 2, 3].map((tick) => `tick ${tick}`),
      "disconnected at byte 21; nothing is lost meanwhile",
      ...[4, 5, 6].map((tick) => `tick ${tick}`),
      "the process has ended: signaled by 15",
    ]);
  }, 120_000);

  it("of docs/RECIPES.md run from the first line to the last", async () => {
    const page = await readFile(join(REPO, "docs/RECIPES.md"), "utf8");
    const [withoutClient = ""] = page.split("## The same by the command line");
    const recipes = [...withoutClient.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? "");
    // npx would look for what is in the path already, at every call.
    const script = ["set -eu", 'npx() { shift; "$@"; }', ...recipes].join("\n");
    const path = [join(REPO, "node_modules/.bin"), dirname(process.execPath), process.env["PATH"]].join(":");
    const env = { ...clientEnvironment(), PATH: path, TURNBOX_URL: server.url };
    const { exitCode, stdout, stderr } = await run("bash", ["-c", script], { env });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toContain('"unifiedDiff":');
    expect(stdout).toContain(`"data": "${Buffer.from("hi\n").toString("base64")}"`);
  }, 120_000);

  it("leave no sandbox behind", async () => {
    await poll("an empty list", async () => {
      const { sandboxes } = await server.json("ls");
      return Array.isArray(sandboxes) && sandboxes.length === 0 ? true : undefined;
    });
  }, 120_000);
});
