import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type OutputChunk, type Sandbox, SandboxError, Turnbox } from "@turnbox/client";
import { type CutProxy, startCutProxy } from "../support/cut-proxy.ts";
import { processesWith } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

const START_MS = 120_000;
/** Some 15 MB of them, which fit into no buffer between the tool and its reader. */
const LINES = 2_000_000;
const HALF_BYTES = 7_000_000;

let server: TestServer;
let proxy: CutProxy;
let turnbox: Turnbox;
let sandbox: Sandbox;

beforeAll(async () => {
  server = await startServer();
  proxy = await startCutProxy();
  turnbox = Turnbox.connect({ home: server.home, env: {}, connect: proxy.connect });
  sandbox = await turnbox.create({ name: "worker", labels: { app: "e2e" } });
}, START_MS);

afterAll(async () => {
  turnbox.close();
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
}, START_MS);

describe("a sandbox's handle", () => {
  it("runs commands, seals turns, goes back and comes back", async () => {
    expect(await sandbox.bash("echo out; echo err >&2; exit 3")).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 3,
      ok: false,
    });
    await sandbox.files.write("notes/a.txt", "one\n");
    const first = await sandbox.turn({ key: "first" });
    expect(first).toMatchObject({ number: 1, unchanged: false });
    expect(await sandbox.turn({ key: "first" })).toMatchObject({ number: 1, snapshotId: first.snapshotId });
    await sandbox.files.write("notes/a.txt", "two\n");

    const back = await sandbox.rollback(1);
    expect(await sandbox.files.readText("notes/a.txt")).toBe("one\n");
    expect(back.generation).toBeGreaterThan(first.generation);
    await sandbox.undo();
    expect(await sandbox.files.readText("notes/a.txt")).toBe("two\n");
    expect(await sandbox.diff({ from: 1, text: true })).toMatchObject([
      { kind: "modified", path: "/workspace/notes/a.txt", unifiedDiff: expect.stringContaining("+two") },
    ]);
    await expect(sandbox.bash("true", { expectedGeneration: first.generation })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
      retryable: false,
      admitted: "no",
    });
  }, 60_000);

  it("is found by its name, and forks are sandboxes of their own", async () => {
    const again = await turnbox.getOrCreate("worker");
    expect(again.id).toBe(sandbox.id);
    expect(await sandbox.info()).toMatchObject({
      name: "worker",
      state: "active",
      turnCount: 1,
      labels: { app: "e2e" },
    });
    {
      const [fork] = await again.fork({ from: 1, labels: { app: "fork" } });
      await using child = fork?.sandbox ?? again;
      expect((await child.bash("cat notes/a.txt")).stdout).toBe("one\n");
      expect((await turnbox.list({ labels: { app: "fork" } })).sandboxes).toHaveLength(1);
    }
    const left = (await turnbox.list({ labels: { app: "fork" } })).sandboxes.map(({ state }) => state);
    expect(left.filter((state) => state !== "destroying")).toEqual([]);
    expect((await again.tools()).anthropic().map(({ name }) => name)).toContain("bash");
  }, 60_000);

  it("reads and writes files and processes", async () => {
    const { files, processes } = sandbox;
    await files.makeDirectory("deep/er", { parents: true });
    await files.write("deep/er/b.bin", Buffer.alloc(300_000, 7), { mode: 0o600 });
    expect(await files.stat("deep/er/b.bin")).toMatchObject({ kind: "file", sizeBytes: 300_000, mode: 0o600 });
    await files.move("deep/er/b.bin", "c.bin");
    expect((await files.read("c.bin", { offset: 299_999 })).length).toBe(1);
    await files.remove("deep", { recursive: true });
    expect(await files.exists("deep")).toBe(false);

    const shell = await processes.launch("bash", { args: ["-c", 'while read line; do echo "got $line"; done'] });
    await shell.write("one\ntwo\n");
    await shell.closeInput();
    const lines: string[] = [];
    for await (const line of shell.lines()) lines.push(line);
    expect(lines).toEqual(["got one", "got two"]);
    expect(await shell.wait()).toMatchObject({ state: "exited", exitCode: 0 });
  }, 60_000);

  it("kills a command whose caller no longer waits", async () => {
    const abort = new AbortController();
    for await (const _chunk of sandbox.bashStream("echo begun; sleep 1234")) break;
    const running = sandbox.bash("sleep 2345", { signal: abort.signal });
    abort.abort();
    await expect(running).rejects.toMatchObject({ reason: "CANCELLED" });
    expect((await sandbox.bash("ps")).stdout).not.toMatch(/sleep (1234|2345)/);
  }, 60_000);
});

/** Takes a stream in, and calls `half` once in its middle. */
async function digest(chunks: AsyncIterable<OutputChunk>, half: () => void): Promise<readonly [string, number]> {
  const hash = createHash("sha256");
  let bytes = 0;
  let state: "before" | "after" = "before";
  for await (const { data, offset, droppedBytes } of chunks) {
    expect([offset, droppedBytes]).toEqual([bytes, 0]);
    hash.update(data);
    bytes += data.length;
    if (bytes < HALF_BYTES || state === "after") continue;
    state = "after";
    half();
  }
  return [hash.digest("hex"), bytes];
}

describe("a stream", () => {
  it("goes on where it was when its connection is cut, without a lost or doubled byte", async () => {
    let cuts = 0;
    const stream = sandbox.bashStream(`seq ${LINES}`);
    const [hash, bytes] = await digest(stream, () => (cuts += proxy.cut()));
    expect(cuts).toBeGreaterThan(0);
    const wanted = Array.from({ length: LINES }, (_, index) => `${index + 1}\n`).join("");
    expect([bytes, hash]).toEqual([wanted.length, createHash("sha256").update(wanted).digest("hex")]);
    expect(await stream.result()).toMatchObject({ exitCode: 0, stdoutDroppedBytes: bytes - 1024 * 1024 });
  }, 90_000);

  it("of a process goes on when the host is killed, and the one of a tool says that its outcome is unknown", async () => {
    const ticks = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo tick $i; sleep 0.1; done";
    const process = await sandbox.processes.launch("bash", { args: ["-c", ticks] });
    const tool = sandbox.bashStream("echo begun; sleep 1000");
    let state: "living" | "killed" = "living";
    const reading = (async () => {
      for await (const _chunk of tool) killHost(server.home, () => (state = "killed"));
    })();
    reading.catch(() => undefined);
    const lines: string[] = [];
    for await (const line of process.lines()) lines.push(line);
    expect(state).toBe("killed");
    expect(lines).toEqual(Array.from({ length: 40 }, (_, index) => `tick ${index + 1}`));
    await expect(reading).rejects.toBeInstanceOf(SandboxError);
    await expect(tool.result()).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN", admitted: "unknown" });
    expect(await sandbox.info()).toMatchObject({ state: "active" });
    expect((await sandbox.bash("echo still here")).stdout).toBe("still here\n");
  }, 90_000);
});

function killHost(home: string, killed: () => void): void {
  const line = processesWith(home).find((one) => one.includes("turnbox-sandbox-host.mjs serve"));
  if (line === undefined) throw new Error("there is no host to kill");
  process.kill(Number(line.split(" ")[0]), "SIGKILL");
  killed();
}
