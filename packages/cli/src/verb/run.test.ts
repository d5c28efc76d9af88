import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";

let world: World;

let sandbox: FakeSandbox;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  sandbox = newSandbox();
  const services = createServices(world);
  harness = await createHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeSandbox(router, sandbox);
    },
  });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox run, ps, logs, attach and kill", () => {
  it("passes input, output and exit code", async () => {
    sandbox.output = "out";
    sandbox.exitCode = 3;
    const ran = await harness.run(["run", "web", "--env", "A=b", "--", "cat", "-u"], { stdin: "hello" });
    expect(ran).toMatchObject({ exitCode: 3, stdout: "out" });
    expect(sandbox).toMatchObject({ typed: "hello", inputEnd: "closed" });
    expect(sandbox.launched).toMatchObject([{ binary: "cat", args: ["-u"], env: { A: "b" } }]);
  });

  it("prints the id of a process that is left running", async () => {
    expect(await harness.run(["run", "web", "-d", "--port", "80", "--", "httpd"])).toMatchObject({
      exitCode: 0,
      stdout: "1abc\n",
    });
    expect(sandbox.launched).toMatchObject([{ exposePort: 80 }]);
    expect((await harness.run(["ps", "web"])).stdout).toMatch(/^PROC .*\n1abc {2}running .* httpd\n$/);
  });

  it("ends the process with itself", async () => {
    const stdin = {
      async *[Symbol.asyncIterator]() {
        yield await Promise.resolve(Buffer.from("x"));
        harness.interrupt("SIGINT");
        await new Promise(() => undefined);
      },
    };
    expect((await harness.run(["run", "web", "--", "cat"], { stdin })).exitCode).toBe(130);
    expect(sandbox.signals).toEqual([15]);
  });

  it("reads on where a connection broke, each byte once", async () => {
    sandbox.output = "0123456789";
    sandbox.breakAfterBytes = [4, 0, 3];
    sandbox.end();
    expect(await harness.run(["logs", "web", "1a", "-f"])).toMatchObject({ exitCode: 0, stdout: "0123456789" });
    expect(sandbox.reads).toEqual([0, 4, 4, 7]);
  });

  it("gives up on a host that stays away", async () => {
    sandbox.breakAfterBytes = Array.from({ length: 1000 }, () => 0);
    const ran = await harness.run(["logs", "web", "1a", "-f"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("HOST_UNREACHABLE");
  });

  it("begins at an offset, says what is gone and where to go on", async () => {
    sandbox.output = "0123456789";
    sandbox.goneBytes = 6;
    const ran = await harness.run(["logs", "web", "1abc", "--from", "2", "--json"]);
    expect(ran.json()).toMatchObject({ output: "6789", offset: 2, nextOffset: 10, goneBytes: 4 });
    expect(ran.stderr).toContain("4 bytes of older output are gone");
  });

  it("follows output as an object on each line under --json", async () => {
    sandbox.output = "one\ntwo\n";
    sandbox.goneBytes = 4;
    sandbox.exitCode = 3;
    sandbox.end();
    const lines = (await harness.run(["logs", "web", "1a", "-f", "--json"])).stdout.trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
      { event: "dropped", offset: 0, bytes: 4 },
      { event: "output", offset: 4, text: "two\n" },
      { event: "ended", sandboxId: "fleet:i1:abc123", process: { processId: "1abc" }, exitCode: 3, nextOffset: 8 },
    ]);
    const attached = await harness.run(["attach", "web", "1a", "--json", "--from", "4"], { stdin: "typed" });
    expect(attached).toMatchObject({ exitCode: 3, stderr: "" });
    expect(sandbox.typed).toBe("typed");
    const [first, last] = attached.stdout.trimEnd().split("\n");
    expect([JSON.parse(first ?? ""), JSON.parse(last ?? "")]).toMatchObject([{ text: "two\n" }, { event: "ended" }]);
  });

  it("types each byte once, also where an answer was lost", async () => {
    sandbox.lostAnswers = 2;
    sandbox.output = "seen before";
    const ran = await harness.run(["attach", "web", "1a"], { stdin: "twice?" });
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(sandbox.typed).toBe("twice?");
    expect((await harness.run(["attach", "web", "1a", "--from", "0", "--no-stdin"])).stdout).toBe("seen before");
  });

  it.each([
    ["9", 9],
    ["KILL", 9],
    ["sigusr1", 10],
  ])("sends the signal %s", async (name, number) => {
    expect((await harness.run(["kill", "web", "1a", "-s", name])).exitCode).toBe(0);
    expect(sandbox.signals).toEqual([number]);
  });

  it.each([
    [2, ["kill", "web", "1a", "-s", "nope"]],
    [2, ["logs", "web", "1a", "--from", "-1"]],
    [4, ["logs", "web", "zz"]],
    [125, ["attach", "web", "zz"]],
    [125, ["run", "web", "--port", "99999", "--", "x"]],
  ])("answers with %d to %j", async (exitCode, args) => {
    expect((await harness.run(args)).exitCode).toBe(exitCode);
  });
});
