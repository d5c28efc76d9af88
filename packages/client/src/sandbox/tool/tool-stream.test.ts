import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createServices, newWorld } from "../../fake/fake-services.ts";
import { createLibraryHarness, type LibraryHarness } from "../../fake/library-harness.suite.ts";
import type { Sandbox } from "../sandbox.ts";
import { type FakeTools, newTools, routeTools } from "./fake-tools.suite.ts";
import type { OutputChunk } from "./tool-call.ts";

const PIECES = [
  { stream: "stdout", text: "one " },
  { stream: "stderr", text: "warn " },
  { stream: "stdout", text: "two " },
  { stream: "stdout", text: "three" },
] as const;

interface Room extends Disposable {
  readonly harness: LibraryHarness;
  readonly tools: FakeTools;
  readonly sandbox: Sandbox;
}

async function openRoom(): Promise<Room> {
  const services = createServices(newWorld());
  const tools = newTools(PIECES);
  const harness = createLibraryHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeTools(router, tools);
    },
  });
  const sandbox = await harness.turnbox.get("web");
  return { harness, tools, sandbox, [Symbol.dispose]: harness[Symbol.dispose] };
}

async function collect(chunks: AsyncIterable<OutputChunk>) {
  const text = { stdout: "", stderr: "" };
  for await (const { stream, data, offset } of chunks) {
    expect(offset).toBe(text[stream].length);
    text[stream] += Buffer.from(data).toString();
  }
  return text;
}

const never = (): Promise<void> => new Promise(() => undefined);

describe("a command", () => {
  it("has both streams, its exit code and whether it went well", async () => {
    using room = await openRoom();
    const result = await room.sandbox.bash("make", { cwd: "/src", env: { A: "1" }, stdin: "in" });
    expect(result).toMatchObject({ stdout: "one two three", stderr: "warn ", exitCode: 0, ok: true, replayed: false });
    expect(room.tools.ran[0]).toMatchObject({ params: { cmd: "make", cwd: "/src", env: { A: "1" } } });
    expect(Buffer.from(room.tools.ran[0]?.stdin ?? []).toString()).toBe("in");
  });

  it("leaves no stream open behind its result", async () => {
    using room = await openRoom();
    await room.sandbox.bash("make", { toolCallId: "c1" });
    expect(room.tools.complete).toEqual(["c1"]);
  });

  it("keeps no more than asked for of each stream, and counts the rest", async () => {
    using room = await openRoom();
    const result = await room.sandbox.bash("make", { limits: { outputBytes: 6 } });
    expect(result).toMatchObject({ stdout: "one tw", stdoutDroppedBytes: 7, stderr: "warn ", stderrDroppedBytes: 0 });
  });

  it("has its output also where its id was used before", async () => {
    using room = await openRoom();
    await room.sandbox.bash("make", { toolCallId: "c1" });
    const again = await room.sandbox.bash("make", { toolCallId: "c1" });
    expect(again).toMatchObject({ replayed: true, stdout: "one two three", stderr: "warn " });
    expect(room.tools.ran).toHaveLength(1);
  });
});

describe("a tool", () => {
  it("is given what JSON holds of its parameters", async () => {
    using room = await openRoom();
    await room.sandbox.tool("grep", { pattern: "x", path: undefined, deep: { list: [1, null] } });
    expect(room.tools.ran[0]?.params).toEqual({ pattern: "x", deep: { list: [1, null] } });
    await expect(async () => await room.sandbox.tool("grep", { limit: 1n })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    expect(room.tools.ran).toHaveLength(1);
  });

  it("that only answers is asked in one call, under one id however often the connection breaks", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteTool", ["lost", "refused"]);
    expect(await room.sandbox.tool("write_file", { path: "a", content: "x" })).toMatchObject({ content: "done" });
    expect(room.harness.sent("ExecuteTool")).toHaveLength(3);
    expect(room.tools.ran).toHaveLength(1);
    expect(room.harness.sent("ExecuteToolStream")).toHaveLength(0);
  });

  it("that may run for long is followed as a stream", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteToolStream", [{ cutAfter: 2 }]);
    expect(await room.sandbox.tool("git_clone", { url: "x" })).toMatchObject({ content: "done" });
    expect(room.harness.sent("ExecuteTool")).toHaveLength(0);
    expect(room.tools.attached).toHaveLength(1);
  });

  it("is killed on the host when its caller has gone", async () => {
    using room = await openRoom();
    room.tools.go = never();
    const abort = new AbortController();
    const left = room.sandbox.tool("grep", { pattern: "x" }, { signal: abort.signal, toolCallId: "c1" });
    left.catch(() => undefined);
    abort.abort();
    await expect(left).rejects.toMatchObject({ reason: "CANCELLED" });
    const late = room.sandbox.tool("grep", { pattern: "x" }, { timeoutMs: 500, toolCallId: "c2" });
    await expect(late).rejects.toMatchObject({ reason: "DEADLINE_EXCEEDED" });
    expect(room.tools.cancelled).toEqual(["c1", "c2"]);
  });
});

describe("a stream whose connection breaks", () => {
  it.each([0, 1, 2, 3, 4])(
    "goes on at its offsets after %d messages, without a lost or doubled byte",
    async (cutAfter) => {
      using room = await openRoom();
      room.harness.faults.set("ExecuteToolStream", [{ cutAfter }]);
      room.harness.faults.set("AttachToolCall", [{ cutAfter: 1 }]);
      const stream = room.sandbox.bashStream("make");
      expect(await collect(stream)).toEqual({ stdout: "one two three", stderr: "warn " });
      expect(await stream.result()).toMatchObject({ stdout: "one two three", stderr: "warn ", ok: true });
      expect(room.tools.ran).toHaveLength(1);
      expect(room.tools.attached.length).toBeGreaterThan(0);
    },
  );

  it("asks the server again where the sandbox is", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteToolStream", [{ cutAfter: 2 }]);
    await room.sandbox.bash("make");
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(2);
    expect(room.tools.attached).toEqual([{ stdout: 4, stderr: 5 }]);
  });

  it("sends a call that never arrived again, under the same id", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteToolStream", ["refused"]);
    expect(await room.sandbox.bash("make")).toMatchObject({ stdout: "one two three" });
    expect(room.harness.sent("ExecuteToolStream")).toHaveLength(2);
    expect(room.tools.ran).toHaveLength(1);
    const [attached] = room.harness.sent("AttachToolCall");
    expect(attached?.["toolCallId"]).toBe(room.tools.ran[0]?.toolCallId);
  });

  it("reads again what leaves no trace on the host, and hands out each byte once", async () => {
    using room = await openRoom();
    room.tools.ledger = "none";
    room.harness.faults.set("ExecuteToolStream", [{ cutAfter: 3 }]);
    expect(await collect(room.sandbox.toolStream("grep", { pattern: "x" }))).toEqual({
      stdout: "one two three",
      stderr: "warn ",
    });
    expect(new Set(room.tools.ran.map(({ toolCallId }) => toolCallId)).size).toBe(1);
  });

  it("fails with OUTCOME_UNKNOWN where the host no longer knows how the call ended", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteToolStream", [{ cutAfter: 1 }]);
    room.tools.lost.add("c1");
    const stream = room.sandbox.bashStream("make", { toolCallId: "c1" });
    // Lost on the host, not yet when the stream began.
    room.tools.lost.clear();
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { data } of stream) {
        seen.push(Buffer.from(data).toString());
        room.tools.lost.add("c1");
      }
    })();
    await expect(reading).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN", admitted: "unknown", retryable: false });
    expect(seen).toEqual(["one "]);
    await expect(stream.result()).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
  });

  it("fails with HOST_UNREACHABLE when the host stays away", async () => {
    using room = await openRoom();
    room.harness.faults.set("ExecuteToolStream", [{ cutAfter: 1 }]);
    room.harness.faults.set(
      "AttachToolCall",
      Array.from({ length: 1000 }, () => "refused" as const),
    );
    await expect(room.sandbox.bash("make")).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    const waitedMs = room.harness.sleptMs.reduce((sum, ms) => sum + ms, 0);
    expect(waitedMs).toBeGreaterThan(20_000);
    expect(waitedMs).toBeLessThanOrEqual(30_000);
  });

  it("does not send again what the table says never to", async () => {
    using room = await openRoom();
    const changed = new SandboxError("GENERATION_CHANGED", "rolled back", { currentGeneration: 4 });
    room.harness.faults.set("ExecuteToolStream", [changed]);
    await expect(room.sandbox.bash("make", { expectedGeneration: 3 })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
      currentGeneration: 4,
    });
    expect(room.harness.sleptMs).toEqual([]);
  });
});

describe("a call whose caller has gone", () => {
  it("is killed on the host when its signal is aborted", async () => {
    using room = await openRoom();
    room.tools.go = never();
    const abort = new AbortController();
    const stream = room.sandbox.bashStream("make", { signal: abort.signal, toolCallId: "c1" });
    const reading = collect(stream);
    reading.catch(() => undefined);
    abort.abort();
    await expect(reading).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(stream.result()).rejects.toBeInstanceOf(SandboxError);
    expect(room.tools.cancelled).toEqual(["c1"]);
  });

  it("is killed when its time is over", async () => {
    using room = await openRoom();
    room.tools.go = never();
    const running = room.sandbox.bash("make", { timeoutMs: 500, toolCallId: "c1" });
    await expect(running).rejects.toMatchObject({ reason: "DEADLINE_EXCEEDED", admitted: "unknown" });
    expect(room.tools.cancelled).toEqual(["c1"]);
  });

  it("is killed when its loop is left", async () => {
    using room = await openRoom();
    room.tools.before = 2;
    room.tools.go = never();
    for await (const _chunk of room.sandbox.bashStream("make", { toolCallId: "c1" })) break;
    expect(room.tools.cancelled).toEqual(["c1"]);
  });

  it("goes on when it was detached, and keeps its result", async () => {
    using room = await openRoom();
    const gate = Promise.withResolvers<void>();
    room.tools.before = 2;
    room.tools.go = gate.promise;
    const stream = room.sandbox.bashStream("make");
    stream.detach();
    for await (const _chunk of stream) break;
    gate.resolve();
    expect(await stream.result()).toMatchObject({ stdout: "one two three", ok: true });
    expect(room.tools.cancelled).toEqual([]);
  });

  it("can be cancelled by its handle", async () => {
    using room = await openRoom();
    const gate = Promise.withResolvers<void>();
    room.tools.go = gate.promise;
    const stream = room.sandbox.bashStream("make", { toolCallId: "c1" });
    await stream.cancel();
    gate.resolve();
    await stream.result();
    expect(room.tools.cancelled).toEqual(["c1"]);
  });
});

describe("the output of a stream", () => {
  it("waits for its reader, and is thrown away where only the result is asked for", async () => {
    using room = await openRoom();
    const stream = room.sandbox.bashStream("make");
    const result = stream.result();
    expect(await result).toMatchObject({ ok: true });
    expect(await collect(stream)).toEqual({ stdout: "", stderr: "" });
  });

  it("reaches a loop that begins together with the question for the result", async () => {
    using room = await openRoom();
    const stream = room.sandbox.bashStream("make");
    const [result, text] = await Promise.all([stream.result(), collect(stream)]);
    expect(text.stdout).toBe(result.stdout);
  });
});
