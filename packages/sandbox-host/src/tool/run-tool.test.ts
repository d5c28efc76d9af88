import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { ToolCall } from "./execute.ts";
import type { Parameters } from "./parameters.ts";

let calls = 0;

const execute = async (
  test: TestHost,
  session: Session,
  toolName: string,
  parameters: Parameters,
  more: Partial<ToolCall> = {},
) => {
  calls += 1;
  return await test.host.executeTool(session, {
    callId: `run-${calls}`,
    toolName,
    parameters,
    stdin: new Uint8Array(),
    expectedGeneration: undefined,
    kill: SIGNAL,
    ...more,
  });
};
const said = async (test: TestHost, session: Session, toolName: string, parameters: Parameters): Promise<string> =>
  (await execute(test, session, toolName, parameters)).result.content;

describe("tools of both tiers", () => {
  it("see one root and one working directory, and each other's writes at once (D17)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    for (const round of [1, 2, 3, 4, 5]) {
      await execute(test, session, "write_file", { path: "a.txt", content: `by tier 1, ${round}` });
      expect(await said(test, session, "bash", { cmd: "cat a.txt" })).toBe(`by tier 1, ${round}`);
      await execute(test, session, "bash", { cmd: `write b.txt tier-2-${round}` });
      expect(await said(test, session, "read_file", { path: "b.txt" })).toBe(`     1\ttier-2-${round}`);
    }
    expect(await said(test, session, "bash", { cmd: "cat /workspace/a.txt" })).toBe("by tier 1, 5");
    expect(await said(test, session, "LS", {})).toBe("a.txt (12 bytes)\nb.txt (8 bytes)");
    expect(await said(test, session, "bash", { cmd: "pwd", cwd: "." })).toBe("/workspace\n");
  });

  it("runs a write once for its id, and a read each time it is asked", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const write = (content: string) => execute(test, session, "write_file", { path: "a", content }, { callId: "w" });
    expect(await write("1")).toMatchObject({ from: "run", result: { content: "Created a (1 byte).", tier: 1 } });
    expect(await write("1")).toMatchObject({ from: "store", result: { content: "Created a (1 byte)." } });
    await expect(write("2")).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    const read = () => execute(test, session, "read_file", { path: "a" }, { callId: "r" });
    expect(await read()).toMatchObject({ from: "run", result: { content: "     1\t1", exitCode: null } });
    await test.bash(session, "write a other");
    expect(await read()).toMatchObject({ from: "run", result: { content: "     1\tother" } });
  });

  it("refuses reads too while the session takes no calls, and of another generation", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const read = (more: Partial<ToolCall> = {}) => execute(test, session, "glob", { pattern: "*" }, more);
    {
      using _closed = session.gate.close("SESSION_PAUSED");
      await expect(read()).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    }
    await expect(read({ expectedGeneration: 9 })).rejects.toMatchObject({ reason: "GENERATION_CHANGED" });
    expect((await read()).result).toMatchObject({ content: "Nothing matches.", isError: false });
    expect(session.gate.inFlight).toBe(0);
  });

  it("gives no input to a tool that runs no code", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await expect(execute(test, session, "read_file", { path: "a" }, { stdin: Buffer.from("x") })).rejects.toThrow(
      "stdin: is for tools that run code",
    );
  });

  it("returns a missing file as a result that is an error, not as a failure (D18)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { result } = await execute(test, session, "Read", { path: "nothing" });
    expect(result).toMatchObject({
      isError: true,
      exitReason: "exited",
      tier: 1,
      content: expect.stringContaining("nothing"),
    });
  });

  it("ends a search whose pattern never ends, says so, and searches on afterwards", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, "write_file", { path: "a", content: `${"a".repeat(60)}!\n` });
    expect(await said(test, session, "grep", { pattern: "^(a+)+$" })).toBe("No match in 1 file.");
    const endless = { pattern: "^(?=a)(a+)+$" };
    const { result } = await execute(test, session, "grep", endless, { limits: { timeoutMs: 500 } });
    expect(result).toMatchObject({ isError: true, exitReason: "timed_out" });
    expect(result.content).toBe(
      "grep took longer than 0.5 s and was ended. Name a smaller directory, or use a simpler pattern.",
    );
    expect(await said(test, session, "grep", { pattern: "a!" })).toContain("a:1:aaa");
  });

  it("gives an image as a block", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, "write_file", { path: "a.gif", content: "GIF89a..." });
    const { result } = await execute(test, session, "read_file", { path: "a.gif" });
    expect(result.blocks?.[1]).toEqual({
      kind: "image",
      mediaType: "image/gif",
      base64: Buffer.from("GIF89a...").toString("base64"),
    });
  });

  it("names what is wrong with a command in the background, before anything happens", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const background = (more: Parameters, stdin = new Uint8Array()) =>
      execute(test, session, "bash", { cmd: "sleep", background: true, ...more }, { stdin });
    await expect(background({ timeout_ms: 5 })).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await expect(background({}, Buffer.from("x"))).rejects.toThrow("stdin: a command in the background has none");
  });
});
