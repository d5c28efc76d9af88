import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness, HOME_TOKEN } from "./cli-harness.suite.ts";
import {
  createServices,
  ExitReason,
  HOST_URL,
  newWorld,
  OnTimeout,
  TurnOutcome,
  type World,
} from "@turnbox/client/fake";

let world: World;
let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox create", () => {
  it("prints the id alone for people", async () => {
    expect(await harness.run(["create"])).toMatchObject({ exitCode: 0, stdout: "fleet:i1:new\n", stderr: "" });
    expect(world.created).toMatchObject([{ template: "mini", name: "", quotaBytes: 0n }]);
  });

  it("prints an object with sandboxId for programs, and passes its options on", async () => {
    const args = [
      "create",
      "--template",
      "mini",
      "--json",
      "--name",
      "n",
      "--quota",
      "1MiB",
      "--label",
      "a=b=c",
      "--label",
      "d=",
    ];
    expect((await harness.run(args)).json()).toMatchObject({ sandboxId: "fleet:i1:new", name: "n" });
    expect(world.created).toEqual([
      { template: "mini", name: "n", quotaBytes: 1_048_576n, labels: { a: "b=c", d: "" } },
    ]);
  });

  it("says which template is not there", async () => {
    expect(await harness.run(["create", "--template", "nope"])).toMatchObject({
      exitCode: 4,
      stdout: "",
      stderr: expect.stringMatching(/^TEMPLATE_NOT_FOUND: no template nope\nremedy: .+\n$/) as unknown,
    });
    const ran = await harness.run(["create", "--template", "nope", "--json"]);
    expect(ran).toMatchObject({ exitCode: 4, stderr: "" });
    expect(ran.json()).toMatchObject({ error: { reason: "TEMPLATE_NOT_FOUND", code: "not_found", retryable: false } });
  });

  it("passes a lifetime on, and nothing where none is given", async () => {
    await harness.run(["create", "--ttl", "2h", "--idle-timeout", "90s", "--on-timeout", "pause"]);
    await harness.run(["create"]);
    expect(world.lifetimes).toMatchObject([
      { ttl: { seconds: 7200n }, idleTimeout: { seconds: 90n }, onTimeout: OnTimeout.PAUSE },
      { onTimeout: OnTimeout.UNSPECIFIED },
    ]);
    expect(world.lifetimes[1]).not.toHaveProperty("ttl");
  });

  it.each([
    ["ttl", "soon"],
    ["idle-timeout", "0"],
    ["on-timeout", "explode"],
  ])("refuses a --%s that breaks its rule, and sends nothing", async (option, value) => {
    expect((await harness.run(["create", `--${option}`, value])).exitCode).toBe(2);
    expect(harness.calls).toEqual([]);
  });

  it("refuses a label without a value, and sends nothing", async () => {
    expect((await harness.run(["create", "--label", "a"])).exitCode).toBe(2);
    expect(harness.calls).toEqual([]);
  });
});

describe("turnbox ls", () => {
  it("walks all pages", async () => {
    world.unreachableInstances = ["i9"];
    const ran = await harness.run(["ls"]);
    expect(ran.stdout).toBe(
      [
        "ID               NAME  STATE   TEMPLATE           TURNS  SIZE     AGE",
        "fleet:i1:abc123  web   active  mini@aaaaaaaaaaaa  2      1.5 KiB  2m",
        "fleet:i1:abd999        active  mini@aaaaaaaaaaaa  0      0 B      2m",
        "",
      ].join("\n"),
    );
    expect(ran.stderr).toBe("not answering, their sandboxes may be missing: i9\n");
  });

  it("has sandboxes under --json, and the home's token on every call", async () => {
    world.unreachableInstances = ["i9"];
    expect((await harness.run(["ls", "--json"])).json()).toMatchObject({
      sandboxes: [{ sandboxId: "fleet:i1:abc123", state: "active", createdAt: "2026-01-01T11:58:00.000Z" }, {}],
      unreachableInstances: ["i9"],
    });
    expect(new Set(harness.calls.map(({ token }) => token))).toEqual(new Set([HOME_TOKEN]));
  });
});

describe("turnbox connect", () => {
  it.each(["web", "abc", "abc123", "fleet:i1:abc123"])("finds the sandbox by %s", async (id) => {
    expect((await harness.run(["connect", id, "--json"])).json()).toEqual({
      sandboxId: "fleet:i1:abc123",
      sessionId: "abc123",
      url: HOST_URL,
      token: "scoped",
      expiresAt: "2026-01-01T13:00:00.000Z",
    });
  });

  it("lists what an ambiguous prefix could mean", async () => {
    const ran = await harness.run(["connect", "ab"]);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toContain("fleet:i1:abc123 (web), fleet:i1:abd999");
  });
});

describe("a name that is not found", () => {
  it("says that there is no such sandbox where every host has answered", async () => {
    const ran = await harness.run(["connect", "nobody", "--json"]);
    expect(ran).toMatchObject({ exitCode: 4 });
    expect(ran.json()).toMatchObject({ error: { reason: "SANDBOX_NOT_FOUND" } });
  });

  it("says which hosts do not answer where it may be on one of them", async () => {
    world.unreachableInstances = ["i9"];
    const ran = await harness.run(["rm", "nobody"]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toMatch(/^HOST_UNREACHABLE: .*"nobody".*not answering: i9\nremedy: (?!.*\bkey\b)/);
    expect((await harness.run(["connect", "web"])).exitCode).toBe(0);
  });
});

describe("turnbox exec", () => {
  it("sends both streams where they belong, straight from the host with the sandbox's token", async () => {
    world.exit = { exitCode: 7, exitReason: ExitReason.EXITED };
    expect(await harness.run(["exec", "web", "--", "ls", "-la", "it's"])).toMatchObject({
      exitCode: 7,
      stdout: "out more",
      stderr: "err",
    });
    expect(world.executed).toMatchObject([
      { sessionId: "abc123", toolName: "bash", params: { cmd: "'ls' '-la' 'it'\\''s'" } },
    ]);
    expect(harness.calls.at(-1)).toMatchObject({ peer: "host", token: "scoped", method: "ExecuteToolStream" });
  });

  it("keeps everything behind -- for the command", async () => {
    await harness.run(["exec", "web", "--", "echo", "--json", "--", ""]);
    expect(world.executed[0]?.params).toEqual({ cmd: "'echo' '--json' '--' ''" });
  });

  it("passes timeout, directory and variables on", async () => {
    await harness.run(["exec", "--timeout", "1.5s", "--cwd", "/tmp", "--env", "A=1", "web", "--", "true"]);
    expect(world.executed[0]?.params).toEqual({ cmd: "'true'", timeout_ms: 1500, cwd: "/tmp", env: { A: "1" } });
  });

  it("passes stdin where it is no terminal, and not with --no-stdin", async () => {
    await harness.run(["exec", "web", "--", "cat"], { stdin: "héllo" });
    await harness.run(["exec", "web", "--no-stdin", "--", "cat"], { stdin: "x" });
    expect(world.executed.map(({ stdin }) => Buffer.from(stdin).toString())).toEqual(["héllo", ""]);
  });

  it("refuses more stdin than a call may carry, before the command runs", async () => {
    const ran = await harness.run(["exec", "web", "--", "cat"], { stdin: "x".repeat(4 * 1024 * 1024 + 1) });
    expect(ran.exitCode).toBe(125);
    expect(ran.stderr).toContain("stdin: is longer than 4 MiB");
    expect(world.executed).toEqual([]);
  });

  it("prints one object under --json", async () => {
    world.exit = { exitCode: 3, exitReason: ExitReason.EXITED };
    const ran = await harness.run(["exec", "web", "--json", "--", "x"]);
    expect(ran).toMatchObject({ exitCode: 3, stderr: "" });
    expect(ran.json()).toMatchObject({ stdout: "out more", stderr: "err", exitCode: 3, reason: "exited" });
  });

  it.each<[string, World["exit"], number]>([
    ["124 after a timeout", { exitCode: 137, exitReason: ExitReason.TIMED_OUT }, 124],
    ["the command's code after a kill", { exitCode: 143, exitReason: ExitReason.KILLED }, 143],
    ["137 when memory ran out", { exitReason: ExitReason.OOM }, 137],
    ["125 when the sandbox was lost", { exitReason: ExitReason.SANDBOX_LOST }, 125],
    ["125 when no process ended", { exitReason: ExitReason.UNSPECIFIED, content: "no such directory" }, 125],
  ])("exits with %s", async (_name, exit, exitCode) => {
    world.exit = exit;
    expect((await harness.run(["exec", "web", "--", "x"])).exitCode).toBe(exitCode);
  });

  it("exits with 125 for its own failures, usage included", async () => {
    expect((await harness.run(["exec", "nobody", "--", "x"])).exitCode).toBe(125);
    expect((await harness.run(["exec"])).exitCode).toBe(125);
    expect((await harness.run(["exec", "web", "ls", "-la"])).exitCode).toBe(125);
  });

  it("ends the command on Ctrl-C", async () => {
    world.hold = new Promise(() => undefined);
    const running = harness.run(["exec", "web", "--", "sleep", "60"]);
    while (world.executed.length === 0) await new Promise((resolve) => setImmediate(resolve));
    harness.interrupt("SIGINT");
    expect((await running).exitCode).toBe(130);
    expect(world.cancelled).toEqual([world.executed[0]?.toolCallId]);
  });
});

describe("turnbox turn", () => {
  it("prints snapshotId and turnNumber under --json", async () => {
    expect((await harness.run(["turn", "web", "--json"])).json()).toMatchObject({ snapshotId: "s4", turnNumber: 4 });
    await harness.run(["turn", "web", "--outcome", "failed"]);
    expect(world.outcomes).toEqual([TurnOutcome.SUCCEEDED, TurnOutcome.FAILED]);
  });

  it("refuses an outcome that there is not", async () => {
    expect((await harness.run(["turn", "web", "--outcome", "meh"])).exitCode).toBe(2);
  });
});

describe("turnbox log", () => {
  it("draws the tree", async () => {
    expect((await harness.run(["log", "web"])).stdout).toBe(
      [
        "*    #1  turn  succeeded  5m   1.0 KiB  s1",
        "|-*  #2  turn  failed     3m   0 B      s2  build",
        "| *      undo             1m   0 B      u1",
        "*    #3  turn  succeeded  50s  0 B      s3  <- head",
        "",
      ].join("\n"),
    );
  });

  it("names the head under --json", async () => {
    expect((await harness.run(["log", "web", "--json"])).json()).toMatchObject({
      head: "s3",
      snapshots: [
        { snapshotId: "s1", kind: "turn", turnNumber: 1, outcome: "succeeded", parentSnapshotId: null },
        { outcome: "failed" },
        { kind: "undo", turnNumber: null, outcome: null },
        { head: true },
      ],
    });
  });
});

describe("turnbox rollback", () => {
  it("takes an id, a prefix or a turn, and says how to undo", async () => {
    for (const reference of ["s2", "u", "#3"]) await harness.run(["rollback", "web", reference]);
    expect(world.rolledBackTo).toEqual(["s2", "u1", "s3"]);
    expect((await harness.run(["rollback", "web", "1"])).stdout).toContain(
      "the files before are u2, undo with: turnbox undo web",
    );
  });

  it("says when there is no such snapshot", async () => {
    expect((await harness.run(["rollback", "web", "#9"])).exitCode).toBe(4);
    expect(world.rolledBackTo).toEqual([]);
  });
});

describe("turnbox rm", () => {
  it("waits until the host no longer counts the sandbox among those it removes", async () => {
    expect((await harness.run(["rm", "web", "--json"])).json()).toEqual({
      sandboxes: [{ sandboxId: "fleet:i1:abc123", destroyed: true, residue: "gone" }],
    });
    const looks = harness.calls.filter(({ method }) => method === "HealthCheck");
    expect(looks.map(({ peer, token }) => ({ peer, token }))).toEqual([
      { peer: "host", token: HOME_TOKEN },
      { peer: "host", token: HOME_TOKEN },
    ]);
  });

  it("says so when something is still there after 15 s", async () => {
    world.looksUntilGone = Number.POSITIVE_INFINITY;
    const ran = await harness.run(["rm", "web"]);
    expect(ran.exitCode).toBe(0);
    expect(ran.stdout).toContain("still being removed");
  });

  it("shows the server's token to no host where the server itself is elsewhere", async () => {
    const ran = await harness.run(["rm", "web", "--json", "--url", "https://box.example", "--token", "box"]);
    expect(ran.json()).toMatchObject({ sandboxes: [{ destroyed: true, residue: "unknown" }] });
    const atHosts = harness.calls.filter(({ peer }) => peer === "host").map(({ token }) => token);
    expect(atHosts).not.toContain("box");
  });

  it("does not wait with --no-wait", async () => {
    await harness.run(["rm", "web", "--no-wait"]);
    expect(world.destroyed).toEqual(["fleet:i1:abc123"]);
    expect(harness.calls.map(({ method }) => method)).not.toContain("HealthCheck");
  });

  it("goes on with the others when one fails, and reports that one", async () => {
    const ran = await harness.run(["rm", "abd", "web", "--json"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.json()).toMatchObject({
      sandboxes: [{ destroyed: false, error: { reason: "HOST_UNREACHABLE" } }, { destroyed: true }],
    });
  });

  it("destroys nothing when one of the names is unknown", async () => {
    expect((await harness.run(["rm", "web", "nobody"])).exitCode).toBe(4);
    expect(world.destroyed).toEqual([]);
  });
});

describe("turnbox template", () => {
  it("sends an archive in pieces of 256 KiB under a key", async () => {
    const path = join(harness.home, "root.tar");
    await writeFile(path, Buffer.alloc(600 * 1024));
    expect((await harness.run(["template", "import", "t", path, "--json"])).json()).toMatchObject({
      name: "t",
      hosts: 1,
    });
    expect(world.imported).toMatchObject({ name: "t", bytes: 600 * 1024, largest: 256 * 1024 });
    expect(world.imported.key).not.toBe("");
  });

  it("says when there is no such file", async () => {
    expect((await harness.run(["template", "import", "t", join(harness.home, "nope")])).exitCode).toBe(4);
  });

  it("lists and removes versions", async () => {
    expect((await harness.run(["template", "ls", "--json"])).json()["templates"]).toHaveLength(3);
    expect((await harness.run(["template", "rm", "debian"])).exitCode).toBe(2);
    await harness.run(["template", "rm", "debian@22"]);
    await harness.run(["template", "rm", "mini"]);
    expect(world.deleted).toEqual([`debian@${"22".repeat(32)}`, `mini@${"aa".repeat(32)}`]);
  });
});

describe("turnbox template rm", () => {
  it.each([
    ["a host elsewhere", ["http://10.0.0.1:9000"], []],
    ["a server elsewhere, whatever hosts it names", [HOST_URL], ["--url", "https://box.example", "--token", "box"]],
  ])("asks no host at all where there is %s", async (_what, more, args) => {
    world.hostUrls = [HOST_URL, ...more];
    const ran = await harness.run(["template", "rm", "mini", ...args]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toMatch(/^UNIMPLEMENTED: templates are removed only where/);
    expect(harness.calls.filter(({ peer }) => peer === "host")).toEqual([]);
  });
});

describe("turnbox", () => {
  it.each([
    ["no verb", []],
    ["an unknown verb", ["frob"]],
    ["an unknown option", ["ls", "--frob"]],
    ["a missing argument", ["turn"]],
    ["an argument too many", ["turn", "a", "b"]],
  ])("answers %s with exit code 2 and a remedy", async (_name, args) => {
    const ran = await harness.run(args);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toMatch(/^INVALID_ARGUMENT: .+\nremedy: Run `turnbox .*--help`\.\n$/);
  });

  it("reports usage as JSON too where --json is given", async () => {
    expect((await harness.run(["ls", "--frob", "--json"])).json()).toMatchObject({
      error: { reason: "INVALID_ARGUMENT" },
    });
  });

  it("has no server where the home has no token, with exit code 3", async () => {
    await rm(join(harness.home, "token"));
    expect((await harness.run(["ls"])).exitCode).toBe(3);
  });
});
