import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "./cli-harness.suite.ts";
import { SandboxError } from "@turnbox/client";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";
import type { InputStream } from "./surroundings.ts";

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

/** A terminal on which these keys are typed, and then nothing more. */
function keyboard(keys: readonly string[]): InputStream & { readonly modes: boolean[] } {
  const modes: boolean[] = [];
  return {
    modes,
    isTTY: true,
    setRawMode: async (raw) => {
      modes.push(raw);
      await Promise.resolve();
    },
    async *[Symbol.asyncIterator]() {
      for (const key of keys) yield await Promise.resolve(Buffer.from(key));
      await new Promise(() => undefined);
    },
  };
}

describe("turnbox shell", () => {
  it("gives every key to a program on a terminal of this one's size, and the terminal back", async () => {
    sandbox.output = "$ ";
    sandbox.exitCode = 5;
    const stdin = keyboard(["ls\r", "\u0003", "exit\r"]);
    const stdout = { isTTY: true, columns: 100, rows: 30 } as const;
    const ran = await harness.run(["shell", "web"], { stdin, stdout, variables: { TERM: "screen" } });
    expect(ran).toMatchObject({ exitCode: 5, stdout: "$ ", stderr: "" });
    expect(sandbox.launched).toMatchObject([
      { binary: "bash", env: { TERM: "screen" }, terminal: { columns: 100, rows: 30 } },
    ]);
    expect(sandbox.typed).toBe("ls\r\u0003exit\r");
    expect(stdin.modes).toEqual([true, false]);
  });

  it("follows the terminal's size", async () => {
    const stdin = keyboard([]);
    const listeners = new Set<() => void>();
    const stdout = {
      isTTY: true as const,
      columns: 100,
      rows: 30,
      on: (_event: "resize", listener: () => void) => listeners.add(listener),
      off: (_event: "resize", listener: () => void) => listeners.delete(listener),
    };
    const running = harness.run(["shell", "web"], {
      stdin: {
        ...stdin,
        async *[Symbol.asyncIterator]() {
          for (const listener of listeners) listener();
          yield await Promise.resolve(Buffer.from("exit\r"));
        },
      },
      stdout,
    });
    expect((await running).exitCode).toBe(0);
    expect(sandbox.sizes.length).toBe(2);
    expect(listeners.size).toBe(0);
  });

  it("gives the terminal back in its usual modes when it is cut off, and hangs the program up", async () => {
    sandbox.output = "\u001b[?1049h";
    const stdin = keyboard([]);
    const onStdout = () => harness.interrupt("SIGTERM");
    const ran = await harness.run(["shell", "web"], { stdin, stdout: { isTTY: true }, onStdout });
    expect(ran.exitCode).toBe(130);
    expect(stdin.modes).toEqual([true, false]);
    expect(ran.stdout).toMatch(/\u001b\[\?1049h\u001b\[\?1049l.*\u001b\[\?25h/);
    expect(sandbox.signals).toEqual([1]);
  });

  it("leaves the program running on Ctrl-]", async () => {
    const stdin = keyboard(["ab\u001dcd"]);
    const ran = await harness.run(["shell", "web"], { stdin, stdout: { isTTY: true } });
    expect(ran.exitCode).toBe(0);
    expect(ran.stderr).toContain("turnbox attach web 1abc");
    expect([sandbox.typed, sandbox.signals, stdin.modes]).toEqual(["ab", [], [true, false]]);
  });

  it("fails with 125, as exec does, where there is no such sandbox", async () => {
    expect((await harness.run(["shell", "nope"])).exitCode).toBe(125);
  });
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

describe("turnbox cp, cat and write", () => {
  it("copies files both ways, into directories under their own names", async () => {
    const here = join(harness.home, "here.txt");
    await writeFile(here, "content", { mode: 0o640 });
    expect((await harness.run(["cp", here, "fleet:i1:abc123:/workspace"])).exitCode).toBe(0);
    expect(sandbox.files.get("/workspace/here.txt")).toMatchObject({ content: Buffer.from("content"), mode: 0o640 });
    const target = join(harness.home, "copies");
    await mkdir(target);
    const ran = await harness.run(["cp", "web:/workspace/here.txt", target, "--json"]);
    expect(ran.json()).toMatchObject({ destination: join(target, "here.txt"), bytes: 7 });
    expect(await readFile(join(target, "here.txt"), "utf8")).toBe("content");
  });

  it("copies directories both ways as archives", async () => {
    const tree = join(harness.home, "tree");
    await mkdir(join(tree, "inner"), { recursive: true });
    await writeFile(join(tree, "inner/text"), "deep");
    await symlink("inner/text", join(tree, "link"));
    expect((await harness.run(["cp", tree, "web:/srv"])).exitCode).toBe(0);
    expect((await harness.run(["cp", "web:/srv", join(harness.home, "back")])).exitCode).toBe(0);
    expect(await readFile(join(harness.home, "back/link"), "utf8")).toBe("deep");
  });

  it("writes through no link that an earlier copy brought", async () => {
    const outside = join(harness.home, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "file"), "mine");
    const links = join(harness.home, "links");
    await mkdir(links);
    await symlink(outside, join(links, "dir"));
    await symlink(join(outside, "file"), join(links, "file"));
    const files = join(harness.home, "files");
    await mkdir(join(files, "dir"), { recursive: true });
    await writeFile(join(files, "dir/planted"), "theirs");
    await writeFile(join(files, "file"), "theirs");
    await harness.run(["cp", links, "web:/links"]);
    await harness.run(["cp", files, "web:/files"]);
    const target = join(harness.home, "target");
    expect((await harness.run(["cp", "web:/links", target])).exitCode).toBe(0);
    sandbox.archives.set("/target", sandbox.archives.get("/files") ?? Buffer.alloc(0));
    sandbox.directories.add("/target");
    expect((await harness.run(["cp", "web:/target", harness.home])).exitCode).toBe(0);
    expect(await readFile(join(target, "dir/planted"), "utf8")).toBe("theirs");
    expect(await readFile(join(outside, "file"), "utf8")).toBe("mine");
    expect(await readdir(outside)).toEqual(["file"]);
  });

  it("leaves nothing of a file that did not come whole, and the old one as it was", async () => {
    sandbox.files.set("/big", { content: Buffer.from("new content"), mode: 0o644 });
    harness.faults.set("ReadFile", [{ cutAfter: 1 }, new SandboxError("PERMISSION_DENIED", "no longer")]);
    const target = join(harness.home, "target");
    await mkdir(target);
    await writeFile(join(target, "big"), "old");
    expect((await harness.run(["cp", "web:/big", target])).exitCode).toBe(1);
    expect(await readdir(target)).toEqual(["big"]);
    expect(await readFile(join(target, "big"), "utf8")).toBe("old");
  });

  it("goes on with a file where the connection broke", async () => {
    sandbox.files.set("/big", { content: Buffer.from("new content"), mode: 0o600 });
    sandbox.breakAfterBytes = [1];
    const target = join(harness.home, "big");
    expect((await harness.run(["cp", "web:/big", target])).exitCode).toBe(0);
    expect(await readFile(target, "utf8")).toBe("new content");
  });

  it("fails where an archive is no archive", async () => {
    sandbox.directories.add("/srv");
    sandbox.archives.set("/srv", Buffer.alloc(2048, "x"));
    const ran = await harness.run(["cp", "web:/srv", join(harness.home, "back")]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("was not unpacked whole");
  });

  it("shows how far it is on a terminal only", async () => {
    sandbox.files.set("/big", { content: Buffer.alloc(4096), mode: 0o644 });
    const target = join(harness.home, "big");
    const shown = await harness.run(["cp", "web:/big", target], { stderr: { isTTY: true } });
    expect(shown.stderr).toMatch(/\r\[#{12}-{12}\] {2}50% {2}2\.0 KiB of 4\.0 KiB.*\r\u001b\[Kcopied/s);
    expect((await harness.run(["cp", "web:/big", target])).stderr).toMatch(/^copied/);
  });

  it("prints and writes files, bytes unchanged", async () => {
    const ran = await harness.run(["write", "web", "/notes", "--mode", "600"], { stdin: "a\u0000b" });
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(sandbox.files.get("/notes")).toMatchObject({ mode: 0o600 });
    expect((await harness.run(["cat", "web", "/notes"])).stdout).toBe("a\u0000b");
  });

  it.each([
    [2, ["cp", "/a", "/b"]],
    [2, ["cp", "web:/a", "web:/b"]],
    [2, ["write", "web", "/a", "--mode", "9"]],
    [4, ["cp", "web:/nothing", "/tmp"]],
    [4, ["cp", "/nothing/here", "web:/a"]],
    [4, ["cat", "web", "/nothing"]],
  ])("answers with %d to %j", async (exitCode, args) => {
    expect((await harness.run(args)).exitCode).toBe(exitCode);
  });
});

describe("turnbox tools and tool", () => {
  it("lists tools, needed parameters first", async () => {
    expect((await harness.run(["tools", "web"])).stdout).toMatch(/\nread_file +no +Read +path \[limit\]\n$/);
    expect((await harness.run(["tools", "web", "--json"])).json()).toMatchObject({
      tools: [{ name: "read_file", inputSchema: { required: ["path"] } }],
    });
  });

  it("takes parameters as words by the schema's types and as JSON", async () => {
    const args = ["tool", "web", "Read", "--params", '{"path": "a", "other": [1]}', "--call-id", "c1"];
    expect(await harness.run([...args, "limit=5", "path=7"])).toMatchObject({ exitCode: 0, stdout: "done\n" });
    expect(world.executed).toMatchObject([
      { toolCallId: "c1", toolName: "Read", params: { path: "7", limit: 5, other: [1] } },
    ]);
    expect((await harness.run(["tool", "web", "Read", "limit=x"])).exitCode).toBe(2);
    expect((await harness.run(["tool", "web", "Read", "--params", "[]"])).exitCode).toBe(2);
  });

  it("passes the exit code of what ran", async () => {
    world.exit = { ...world.exit, exitCode: 9 };
    expect((await harness.run(["tool", "web", "bash", "cmd=exit 9"])).exitCode).toBe(9);
  });
});

describe("turnbox net, port and create --allow-net", () => {
  it("allows, denies and turns off", async () => {
    await harness.run(["net", "web", "allow", "a.example", "b.example"]);
    await harness.run(["net", "web", "deny", "a.example"]);
    expect(world.network.policy).toMatchObject({
      allowOutbound: true,
      allowList: ["b.example"],
      denyList: ["a.example"],
      required: true,
    });
    expect((await harness.run(["net", "web", "off"])).stdout).toContain("out: nowhere\n");
  });

  it("never opens everything by denying the last destination, nor narrows by allowing one more", async () => {
    await harness.run(["net", "web", "allow", "a.example"]);
    await harness.run(["net", "web", "deny", "a.example"]);
    expect(world.network.policy).toMatchObject({ allowOutbound: false, allowList: [] });
    await harness.run(["net", "web", "allow"]);
    await harness.run(["net", "web", "allow", "b.example"]);
    expect(world.network.policy).toMatchObject({ allowOutbound: true, allowList: [] });
  });

  it("shows refusals without letting them act upon the terminal", async () => {
    const { stdout } = await harness.run(["net", "web"]);
    expect(stdout).toContain("evil.example\\u{001b}[2J:443  (default)");
    expect(stdout).toContain("closed by the host's settings: 10.0.0.0/8\n");
  });

  it("refuses a deny of nothing and unknown actions", async () => {
    expect((await harness.run(["net", "web", "deny"])).exitCode).toBe(2);
    expect((await harness.run(["net", "web", "open"])).exitCode).toBe(2);
  });

  it("prints the way to a port", async () => {
    expect((await harness.run(["port", "web", "8000", "--json"])).json()).toMatchObject({
      url: "http://127.0.0.1:9000/8000",
      token: "port-token",
      expiresAt: null,
    });
  });

  it("makes sandboxes with a way out, to some destinations or to all", async () => {
    await harness.run(["create", "--allow-net", "a.example", "--allow-net", "10.0.0.0/8"]);
    await harness.run(["create", "--allow-net"]);
    await harness.run(["create"]);
    expect(world.network.created).toMatchObject([
      { allowOutbound: true, allowList: ["a.example", "10.0.0.0/8"], required: true },
      { allowOutbound: true, allowList: [] },
      undefined,
    ]);
  });
});
