import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
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

/** Runs an example by the command of README.md, and returns the lines that it printed after those of the bootstrap. */
async function example(name: string): Promise<readonly string[]> {
  const env = clientEnvironment();
  const { exitCode, stdout, stderr } = await run("npm", ["run", "--silent", "example", name], { env, cwd: REPO });
  expect({ exitCode, stderr: stderr.replaceAll(/^npm warn .*\n/gm, "") }).toEqual({ exitCode: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  return lines.slice(lines.findIndex((line) => line.startsWith("bootstrap: ready")) + 1);
}

describe("the examples", () => {
  it("run by one command, which names them if it is given no other", async () => {
    const { exitCode, stdout } = await run("npm", ["run", "--silent", "example"], {
      env: clientEnvironment(),
      cwd: REPO,
    });
    expect(exitCode).toBe(2);
    for (const name of ["agent-loop", "bisect-turns", "fork-and-race", "long-process"]) expect(stdout).toContain(name);
  }, 120_000);

  it("run the ten lines of README.md from a file", async () => {
    const readme = await readFile(join(REPO, "README.md"), "utf8");
    const [, lines = ""] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? [];
    await mkdir(join(REPO, "dist-pack"), { recursive: true });
    const folder = await mkdtemp(join(REPO, "dist-pack/ten-lines-"));
    try {
      await writeFile(join(folder, "ten-lines.ts"), lines);
      expect(await example(join(folder, "ten-lines.ts"))).toEqual(["hello"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 120_000);

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
