import { describe, expect, it } from "@jest/globals";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { fromConnectError } from "@turnbox/rpc/wire";
import {
  type AttachToolCallResponse,
  ExitReason,
  type ExecuteToolStreamResponse,
  OnDisconnect,
  SlowReader,
  ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo, reasonOf } from "./client.suite.ts";

const MiB = 1024 * 1024;

const toolsOf = ({ host }: TestHost): Client<typeof ToolService> => accessTo(host).client(ToolService);

const bash = (toolCallId: string, cmd: string) => ({ sessionId: "s", toolCallId, toolName: "bash", params: { cmd } });

interface Seen {
  readonly text: string;
  readonly bytes: number;
  readonly dropped: number;
  readonly ends: readonly string[];
}

async function readAll(stream: AsyncIterable<ExecuteToolStreamResponse | AttachToolCallResponse>): Promise<Seen> {
  const parts: Uint8Array[] = [];
  let dropped = 0;
  const ends: string[] = [];
  for await (const { event } of stream) {
    if (event.case === "progress") {
      parts.push(event.value.data);
      dropped += Number(event.value.droppedBytes);
    } else if (event.case === "response") ends.push(ExitReason[event.value.exitReason]);
  }
  const all = Buffer.concat(parts);
  return { text: all.toString("latin1", 0, 100), bytes: all.length, dropped, ends };
}

/** The first bytes of a stream. */
async function firstOf(stream: AsyncIterator<ExecuteToolStreamResponse>): Promise<Uint8Array> {
  const { event } = (await stream.next()).value as ExecuteToolStreamResponse;
  if (event.case !== "progress") throw new Error("there is no output");
  return event.value.data;
}

describe("AttachToolCall", () => {
  it("joins a call that has ended from a byte offset, gets the rest of its output and the response", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    await tools.executeTool(bash("c", "print 0123456789 err 0"));
    const seen = await readAll(tools.attachToolCall({ sessionId: "s", toolCallId: "c", stdoutOffset: 4n }));
    expect(seen).toEqual({ text: "456789err", bytes: 9, dropped: 0, ends: ["EXITED"] });
    expect((await readAll(tools.attachToolCall({ sessionId: "s", toolCallId: "c", stdoutOffset: 100n }))).text).toBe(
      "err",
    );
  });

  it("resumes a stream that broke off, without a lost byte", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const leave = new AbortController();
    let offset = 0n;
    const broken = async (): Promise<void> => {
      for await (const { event } of tools.executeToolStream({ call: bash("c", `flood ${32 * MiB}`) }, leave)) {
        if (event.case !== "progress") continue;
        offset = event.value.offset + BigInt(event.value.data.length);
        if (offset > 5 * MiB) leave.abort();
      }
    };
    expect(await reasonOf(broken())).toBe("CANCELLED");
    const rest = await readAll(tools.attachToolCall({ sessionId: "s", toolCallId: "c", stdoutOffset: offset }));
    expect([Number(offset) + rest.bytes, rest.dropped, rest.ends]).toEqual([32 * MiB, 0, ["EXITED"]]);
  });

  it("counts the output that is no longer kept after a restart, and gives the result", async () => {
    const before = await startTestHost();
    await before.create({ sessionId: "s" });
    await toolsOf(before).executeTool(bash("c", "echo 0123456789"));
    await using after = await before.restart();
    const seen = await readAll(toolsOf(after).attachToolCall({ sessionId: "s", toolCallId: "c", stdoutOffset: 4n }));
    expect(seen).toEqual({ text: "", bytes: 0, dropped: 7, ends: ["EXITED"] });
  });

  it("refuses ids that it does not know", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const stream = toolsOf(test).attachToolCall({ sessionId: "s", toolCallId: "nothing" });
    expect(await reasonOf(readAll(stream))).toBe("TOOL_CALL_NOT_FOUND");
  });
});

describe("a second ExecuteToolStream of the same id", () => {
  it("joins the call in flight with all of its output, and does not hold it up when it stalls (M4)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const call = bash("c", `flood ${16 * MiB}`);
    const stalled = tools.executeToolStream({ call })[Symbol.asyncIterator]();
    expect((await firstOf(stalled)).length).toBeGreaterThan(0);
    const seen = await readAll(tools.executeToolStream({ call }));
    expect([seen.bytes, seen.ends]).toEqual([16 * MiB, ["EXITED"]]);
    expect(session.gate.inFlight).toBe(0);
  });
});

describe("a stalled reader", () => {
  it("that vanishes frees its source within a second (attack 52, M4)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const leave = new AbortController();
    const stream = toolsOf(test)
      .executeToolStream({ call: bash("c", `flood ${4 * MiB}`) }, leave)
      [Symbol.asyncIterator]();
    await stream.next();
    // Nothing but the reader holds the tool up, and little is left to do once it does not.
    expect(session.gate.inFlight).toBe(1);
    const leftMs = performance.now();
    leave.abort();
    while (session.gate.inFlight > 0) await new Promise((resolve) => void setImmediate(resolve));
    expect(performance.now() - leftMs).toBeLessThan(1_000);
  });

  it("that drops lets the tool run to its end, and gets the count of what it lost (attack 34)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const call = { ...bash("c", `flood ${16 * MiB}`), slowReader: SlowReader.DROP };
    const stream = toolsOf(test).executeToolStream({ call });
    const iterator = stream[Symbol.asyncIterator]();
    const first = await firstOf(iterator);
    while (session.gate.inFlight > 0) await new Promise((resolve) => void setImmediate(resolve));
    const rest = await readAll({ [Symbol.asyncIterator]: () => iterator });
    expect(rest.dropped).toBeGreaterThan(MiB);
    expect(first.length + rest.bytes + rest.dropped).toBe(16 * MiB);
    expect(rest.ends).toEqual(["EXITED"]);
  });
});

describe("a client that goes away", () => {
  const runs = async (test: TestHost): Promise<() => Promise<number>> => {
    const session = await test.create({ sessionId: "s" });
    await test.bash(session, "echo up");
    return () => test.runtime.processes(session.row.container ?? "", { signal: SIGNAL });
  };
  const until = async (condition: () => Promise<boolean>): Promise<void> => {
    while (!(await condition())) await new Promise((resolve) => void setImmediate(resolve));
  };

  it.each(["executeTool", "executeToolStream"] as const)(
    "kills its call if the request says so: %s",
    async (method) => {
      await using test = await startTestHost();
      const processes = await runs(test);
      const tools = toolsOf(test);
      const leave = new AbortController();
      const call = { ...bash("c", "sleep"), onDisconnect: OnDisconnect.KILL };
      const left =
        method === "executeTool" ? tools.executeTool(call, leave) : readAll(tools.executeToolStream({ call }, leave));
      const reason = reasonOf(left);
      await until(async () => (await processes()) > 0);
      leave.abort();
      expect(await reason).toBe("CANCELLED");
      await until(async () => (await processes()) === 0);
      expect(await tools.executeTool(call)).toMatchObject({ exitReason: ExitReason.KILLED, replayed: true });
    },
  );

  it("leaves its call running otherwise, and finds it by its id", async () => {
    await using test = await startTestHost();
    const processes = await runs(test);
    const tools = toolsOf(test);
    const leave = new AbortController();
    const left = reasonOf(tools.executeTool(bash("c", "sleep"), leave));
    await until(async () => (await processes()) > 0);
    leave.abort();
    expect(await left).toBe("CANCELLED");
    const attached = readAll(tools.attachToolCall({ sessionId: "s", toolCallId: "c" }));
    expect(await processes()).toBe(1);
    expect((await tools.cancelToolCall({ sessionId: "s", toolCallId: "c" })).wasRunning).toBe(true);
    expect((await attached).ends).toEqual(["KILLED"]);
  });
});

describe("CancelToolCall", () => {
  it("kills a call that runs, leaves one alone that has ended, and does not know others (attack 37)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    await test.bash(session, "echo up");
    const running = tools.executeTool(bash("c", "sleep"));
    const processes = () => test.runtime.processes(session.row.container ?? "", { signal: SIGNAL });
    while ((await processes()) === 0) await new Promise((resolve) => void setImmediate(resolve));
    expect((await tools.cancelToolCall({ sessionId: "s", toolCallId: "c" })).wasRunning).toBe(true);
    expect((await running).exitReason).toBe(ExitReason.KILLED);
    expect((await tools.cancelToolCall({ sessionId: "s", toolCallId: "c" })).wasRunning).toBe(false);
    expect((await tools.executeTool(bash("c", "sleep"))).replayed).toBe(true);
    expect(await reasonOf(tools.cancelToolCall({ sessionId: "s", toolCallId: "d" }))).toBe("TOOL_CALL_NOT_FOUND");
  });
});

describe("limits of a call", () => {
  it("bound its time and what its result keeps of the output", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const slow = await tools.executeTool({ ...bash("a", "sleep"), limits: { timeout: durationFromMs(50) } });
    expect([slow.exitCode, slow.exitReason]).toEqual([124, ExitReason.TIMED_OUT]);
    const long = await tools.executeTool({ ...bash("b", "echo 0123456789"), limits: { outputBytes: 4n } });
    expect(long.stdout).toMatchObject({ totalBytes: 11n, truncatedBytes: 7n });
  });

  it("are part of the call, and refused by name if they cannot be enforced", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    await tools.executeTool({ ...bash("a", "echo x"), limits: { outputBytes: 4n } });
    expect(await reasonOf(tools.executeTool(bash("a", "echo x")))).toBe("IDEMPOTENCY_CONFLICT");
    const refusal = async (limits: object): Promise<string> =>
      await tools.executeTool({ ...bash("b", "echo x"), limits }).then(
        () => "none",
        (thrown: unknown) => fromConnectError(thrown).metadata["field"] ?? "",
      );
    expect(await refusal({ memoryBytes: 1n })).toBe("limits.memory_bytes");
    expect(await refusal({ outputBytes: BigInt(2 ** 40) })).toBe("limits.output_bytes");
    expect(await refusal({ timeout: durationFromMs(-5) })).toBe("limits.timeout");
  });
});

describe("ListTools and the tools that it lists", () => {
  it("lists what every tool takes, and which ones only read", async () => {
    await using test = await startTestHost();
    const { tools } = await toolsOf(test).listTools({});
    const read = tools.find(({ name }) => name === "read_file");
    expect(read).toMatchObject({ tier: 1, readOnly: true, aliases: ["Read", "read"] });
    expect(read?.inputSchema).toMatchObject({
      type: "object",
      required: ["path"],
      additionalProperties: false,
      properties: { offset: { type: "integer", minimum: 1, default: 1 } },
    });
    expect(tools.find(({ name }) => name === "git_status")).toMatchObject({ tier: 2, readOnly: false });
  });

  it("streams exactly one response for a file tool, with its blocks", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const call = (toolCallId: string, toolName: string, params: Record<string, string>) => ({
      call: { sessionId: "s", toolCallId, toolName, params },
    });
    const events = [];
    for await (const { event } of tools.executeToolStream(call("w", "Write", { path: "a.gif", content: "GIF89a" })))
      events.push(event);
    for await (const { event } of tools.executeToolStream(call("r", "Read", { path: "a.gif" }))) events.push(event);
    expect(events).toMatchObject([
      { case: "response", value: { content: "Created a.gif (6 bytes).", tier: 1 } },
      {
        case: "response",
        value: {
          content: "a.gif: image/gif, 6 bytes",
          blocks: [
            { block: { case: "text", value: { text: "a.gif: image/gif, 6 bytes" } } },
            {
              block: { case: "image", value: { mediaType: "image/gif", data: new Uint8Array(Buffer.from("GIF89a")) } },
            },
          ],
        },
      },
    ]);
  });

  it("refuses what is not in it before anything happens, naming it", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const reason = (toolName: string, params: Record<string, string>): Promise<string> =>
      tools.executeTool({ sessionId: "s", toolCallId: "c", toolName, params }).then(
        () => "none",
        (thrown: unknown) => `${fromConnectError(thrown).reason} ${fromConnectError(thrown).message}`,
      );
    expect(await reason("rm_rf", {})).toContain("TOOL_NOT_FOUND");
    expect(await reason("write_file", { path: "a" })).toContain("INVALID_ARGUMENT params.content: is required");
    expect(await reason("read_file", { file_path: "a" })).toContain("params.path: is required");
  });
});
