import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newMcpWorld, type World } from "@turnbox/client/fake";
import type { InputStream } from "../surroundings.ts";

let world: World;
let harness: Harness;
beforeEach(async () => {
  world = newMcpWorld();
  harness = await createHarness(createServices(world));
});
afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "0" } },
};

/** A client on stdin that sends the next request when the last one is answered, and then goes away. */
async function talk(args: readonly string[], requests: readonly object[]) {
  let next = Promise.withResolvers<undefined>();
  const stdin: InputStream = {
    isTTY: false,
    async *[Symbol.asyncIterator]() {
      for (const [index, request] of [INITIALIZE, ...requests].entries()) {
        next = Promise.withResolvers();
        yield Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id: index + 1, ...request })}\n`);
        await next.promise;
      }
    },
  };
  const ran = await harness.run(["mcp", ...args], {
    stdin,
    onStdout: () => {
      next.resolve(undefined);
    },
  });
  const answers = ran.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly id: number; readonly result: Readonly<Record<string, unknown>> });
  return { ...ran, answers };
}

const callOf = (name: string, params: object = {}) => ({ method: "tools/call", params: { name, arguments: params } });

describe("turnbox mcp", () => {
  it("speaks the protocol on stdin and stdout until the client goes away, and destroys what it made", async () => {
    const { exitCode, stderr, answers } = await talk([], [{ method: "tools/list" }, callOf("bash", { cmd: "ls" })]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(answers.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(answers[0]?.result["serverInfo"]).toMatchObject({ name: "turnbox" });
    expect(world.created).toMatchObject([{ template: "mini", name: "" }]);
    expect(world.destroyed).toEqual(["fleet:i1:new"]);
    // Where this program is killed instead, the sandbox ends by itself.
    expect(world.lifetimes[0]?.ttl?.seconds).toBe(86_400n);
  });

  it("does not make a sandbox for a client that only lists the tools", async () => {
    await talk([], [{ method: "tools/list" }]);
    expect(world.created).toEqual([]);
    expect(harness.calls.map(({ method }) => method)).toContain("ListTools");
  });

  it("works in a sandbox that is there, by its name, and leaves it alone", async () => {
    await talk(["--sandbox", "web"], [callOf("bash", { cmd: "ls" })]);
    expect(world.created).toEqual([]);
    expect(world.executed[0]?.sessionId).toBe("abc123");
    expect(world.destroyed).toEqual([]);
    const missing = await harness.run(["mcp", "--sandbox", "nope"], { stdin: "" });
    expect(missing.exitCode).toBe(4);
  });

  it("gives its sandbox the template, the name and the time that were asked for, and keeps it", async () => {
    await talk(["--template", "debian", "--name", "work", "--ttl", "2h", "--keep"], [callOf("turns")]);
    expect(world.created).toMatchObject([{ template: "debian", name: "work" }]);
    expect(world.lifetimes[0]?.ttl?.seconds).toBe(7200n);
    expect(world.destroyed).toEqual([]);
  });

  it("serves HTTP on request, prints where and with which token, and ends with a signal", async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const running = harness.run(["mcp", "--http", "--json"], {
      onStdout: () => {
        resolve(undefined);
      },
    });
    await promise;
    harness.interrupt("SIGTERM");
    const { exitCode, json } = await running;
    expect(exitCode).toBe(0);
    expect(json()).toEqual({
      ready: true,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/),
      token: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  it("does not print a token that it was given", async () => {
    const token = "given-by-the-environment";
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const running = harness.run(["mcp", "--http"], {
      variables: { TURNBOX_MCP_TOKEN: token },
      onStdout: () => {
        resolve(undefined);
      },
    });
    await promise;
    harness.interrupt("SIGTERM");
    const { stdout, stderr } = await running;
    expect(stdout).toMatch(/^turnbox mcp ready http:\S+\n$/);
    expect(stdout + stderr).not.toContain(token);
  });

  it.each([
    [["--http", "--host", "0.0.0.0"], "host"],
    [["--http", "--name", "work"], "--keep"],
    [["--http", "--max-sessions", "0"], "max-sessions"],
    [["--http", "--port", "70000"], "port"],
    [["--http", "--http-token-file", "/nonexistent"], "http-token-file"],
    [["--sandbox", "web", "--name", "work"], "--sandbox"],
    [["--ttl", "soon"], "ttl"],
  ])("refuses %j", async (args, word) => {
    const { exitCode, stderr } = await harness.run(["mcp", ...args], { stdin: "" });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(word);
  });
});
