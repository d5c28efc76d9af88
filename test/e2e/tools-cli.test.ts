import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ended, poll, processesWith, REPO } from "../support/process.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");

let server: TestServer;
let scratch: string;
let id: string;

beforeAll(async () => {
  server = await startServer();
  scratch = await mkdtemp(join(tmpdir(), "turnbox-tools-cli-"));
  id = String((await server.json("create", "--template", "mini", "--name", "work"))["sandboxId"]);
}, 180_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(scratch, { recursive: true, force: true });
}, 120_000);

/** Requires success and answers with what was printed. */
const say = async (...args: readonly string[]): Promise<string> => {
  const result = await server.cli(...args);
  if (result.exitCode !== 0) throw new Error(`turnbox ${args.join(" ")}: exit ${result.exitCode}: ${result.stderr}`);
  return result.stdout;
};
const cliEnvironment = () => ({ ...environment(server.home), TURNBOX_PORT: new URL(server.url).port });

describe("tools by the command line", () => {
  it("lists the catalog and calls a tool once for each call id", async () => {
    const { tools } = await server.json("tools", id);
    const names = (tools as readonly { readonly name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["bash", "read_file", "write_file", "edit_file", "grep"]));
    await say("tool", "work", "write_file", "path=notes.txt", "content=first line");
    expect(await say("tool", "work", "read_file", "path=notes.txt")).toContain("first line");
    const call = ["tool", id, "bash", "--call-id", "once", "--params", '{"cmd": "echo x >> count; wc -l < count"}'];
    expect(await server.json(...call)).toMatchObject({ exitCode: 0, replayed: false });
    expect(await server.json(...call)).toMatchObject({ content: expect.stringContaining("1"), replayed: true });
    expect((await server.cli("tool", id, "bash", "cmd=exit 3")).exitCode).toBe(3);
    expect((await server.cli("tool", id, "nope")).exitCode).toBe(4);
  }, 120_000);
});

describe("files by the command line", () => {
  it("writes, prints and copies files and directories both ways, unchanged", async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 256));
    const written = await server.pipe(bytes, "write", id, "deep/er/bytes", "-p", "--mode", "600");
    expect(written.exitCode).toBe(0);
    await say("cp", `${id}:/workspace/deep/er/bytes`, join(scratch, "bytes"));
    expect((await readFile(join(scratch, "bytes"))).equals(bytes)).toBe(true);
    expect((await stat(join(scratch, "bytes"))).mode & 0o777).toBe(0o600);

    const tree = join(scratch, "tree");
    await mkdir(join(tree, "inner"), { recursive: true });
    await writeFile(join(tree, "inner/text"), "text of the tree\n");
    await writeFile(join(tree, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
    await symlink("inner/text", join(tree, "link"));
    await say("cp", tree, "work:/workspace/copied");
    expect(await say("cat", "work", "copied/inner/text")).toBe("text of the tree\n");
    expect(await say("exec", "work", "--no-stdin", "--", "readlink", "copied/link")).toBe("inner/text\n");
    // A directory is there: the copy goes into it.
    await say("cp", tree, "work:/workspace/copied");
    expect(await say("cat", "work", "copied/tree/inner/text")).toBe("text of the tree\n");
    await say("cp", `${id}:copied`, join(scratch, "back"));
    expect(await readFile(join(scratch, "back/tree/inner/text"), "utf8")).toBe("text of the tree\n");
    expect(await readlink(join(scratch, "back/link"))).toBe("inner/text");
    expect((await stat(join(scratch, "back/run.sh"))).mode & 0o777).toBe(0o755);

    expect((await server.cli("cat", id, "nothing")).exitCode).toBe(4);
    expect((await server.cli("cp", `${id}:/nothing`, scratch)).exitCode).toBe(4);
    expect((await server.cli("cp", join(scratch, "nothing"), `${id}:/workspace`)).exitCode).toBe(4);
    expect((await server.cli("cp", scratch, scratch)).exitCode).toBe(2);
  }, 120_000);
});

describe("processes by the command line", () => {
  it("launches, lists, follows, attaches and kills", async () => {
    const proc = (
      await say("run", id, "-d", "--", "sh", "-c", "echo ready; while read l; do echo got $l; done")
    ).trim();
    await poll("its first line", async () => ((await say("logs", id, proc)) === "ready\n" ? true : undefined));
    expect((await server.json("ps", id))["processes"]).toMatchObject([{ processId: proc, state: "running" }]);
    const attached = await server.pipe("one\ntwo\n", "attach", id, proc, "--from", "0");
    expect(attached).toMatchObject({ exitCode: 0, stdout: "ready\ngot one\ngot two\n" });
    expect(await say("logs", id, proc, "-f", "--from", "6")).toBe("got one\ngot two\n");

    const sleeper = (await say("run", id, "-d", "--", "sleep", "600")).trim();
    const follow = spawn(process.execPath, [CLI, "logs", id, sleeper, "-f"], {
      env: cliEnvironment(),
      stdio: "ignore",
    });
    const followed = ended(follow);
    await say("kill", id, sleeper, "-s", "KILL");
    expect(await followed).toBe(0);
    expect((await server.json("logs", id, sleeper))["process"]).toMatchObject({ state: "exited", exitSignal: 9 });
    expect(await server.cli("run", id, "--no-stdin", "--", "sh", "-c", "echo out; exit 7")).toMatchObject({
      exitCode: 7,
      stdout: "out\n",
    });
    expect(await server.pipe("through\n", "run", id, "--", "cat")).toMatchObject({ exitCode: 0, stdout: "through\n" });
    expect((await server.cli("logs", id, "nope")).exitCode).toBe(4);
  }, 120_000);

  it("follows output without a lost byte while the host is killed and comes back", async () => {
    const count = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; sleep 0.05; done";
    const proc = (await say("run", id, "-d", "--", "sh", "-c", count)).trim();
    const follow = spawn(process.execPath, [CLI, "logs", id, proc, "-f"], {
      env: cliEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [output, complaint] = ["", ""];
    follow.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    follow.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
    const followed = ended(follow);
    await poll("some output", () => (output.includes("20\n") ? true : undefined));
    const line = processesWith(server.home).find((one) => one.includes("turnbox-sandbox-host.mjs serve"));
    if (line === undefined) throw new Error(`no host among ${processesWith(server.home).join("\n")}`);
    const pid = Number(line.trim().split(" ")[0]);
    expect(pid).toBeGreaterThan(1);
    process.kill(pid, "SIGKILL");
    expect([await followed, complaint]).toEqual([0, ""]);
    expect(output).toBe(Array.from({ length: 200 }, (_, index) => `${index + 1}\n`).join(""));
  }, 120_000);
});

describe("the network by the command line", () => {
  it("shows and changes the policy, and gives a way to a port", async () => {
    expect(await say("net", id)).toContain("out: nowhere\n");
    expect(await server.json("net", id, "allow", "example.org", "192.31.196.0/24")).toMatchObject({
      policy: { allowOutbound: true, allowList: ["example.org", "192.31.196.0/24"] },
    });
    expect(await server.json("net", id, "deny", "example.org")).toMatchObject({
      policy: { allowOutbound: true, allowList: ["192.31.196.0/24"], denyList: ["example.org"] },
    });
    expect(await server.json("net", id, "off")).toMatchObject({ policy: { allowOutbound: false, allowList: [] } });
    const { url, token } = await server.json("port", id, "8000");
    expect(url).toMatch(/^http/);
    expect(String(token).length).toBeGreaterThan(16);
    const open = String((await server.json("create", "--template", "mini", "--allow-net", "example.org"))["sandboxId"]);
    expect(await server.json("net", open)).toMatchObject({
      policy: { allowOutbound: true, allowList: ["example.org"] },
    });
    await say("rm", open);
  }, 120_000);
});
