import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { ToolCall } from "./execute.ts";
import { FrameReader } from "./output/frame-reader.ts";
import type { OutputJournal } from "./output/journal.ts";

const execute = (test: TestHost, session: Session, more: Partial<ToolCall>) =>
  test.host.executeTool(session, {
    callId: "call",
    toolName: "bash",
    parameters: { cmd: "echo hi" },
    stdin: new Uint8Array(),
    expectedGeneration: undefined,
    kill: SIGNAL,
    ...more,
  });

/** All output, of which no byte is missing. */
async function read(reader: FrameReader): Promise<string> {
  let seen = "";
  for await (const { data, offset } of reader.frames()) {
    expect(offset).toBe(seen.length);
    seen += Buffer.from(data).toString();
  }
  return seen;
}

describe("executeTool", () => {
  it("runs a call once: the same id joins it or gets its stored result, also over a restart (D22)", async () => {
    const before = await startTestHost();
    const session = await before.create();
    const [first, joined] = await Promise.all([execute(before, session, {}), execute(before, session, {})]);
    expect([first.from, joined.from].sort()).toEqual(["run", "store"]);
    expect(joined.result).toEqual(first.result);
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again && (await execute(after, again, {}))).toEqual({ result: first.result, from: "store" });
  });

  it("refuses the same id with other arguments", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, {});
    await expect(execute(test, session, { parameters: { cmd: "echo other" } })).rejects.toMatchObject({
      reason: "IDEMPOTENCY_CONFLICT",
    });
  });

  it("reports a call whose end was not recorded as unknown, and never runs it again", async () => {
    const before = await startTestHost();
    const session = await before.create();
    const cut = execute(before, session, { parameters: { cmd: "sleep" } }).catch(() => undefined);
    while (session.gate.inFlight === 0) await new Promise((resolve) => void setImmediate(resolve));
    await using after = await before.restart();
    before.runtime.crash(session.row.container ?? "", "lost");
    await cut;
    const again = after.host.registry.find(session.row.id);
    if (again === undefined) throw new Error("the session is gone");
    await expect(execute(after, again, { parameters: { cmd: "sleep" } })).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      admitted: "unknown",
    });
  });

  it("does not keep a refusal: the same id works once the reason is gone (D22)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    {
      using _closed = session.gate.close("ROLLBACK_IN_PROGRESS");
      await expect(execute(test, session, {})).rejects.toMatchObject({ reason: "ROLLBACK_IN_PROGRESS" });
    }
    await expect(execute(test, session, { parameters: { cmd: "nosuch" } })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    await expect(execute(test, session, { expectedGeneration: 7 })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
    });
    expect((await execute(test, session, {})).result.content).toBe("hi\n");
  });

  it("returns a failing command as a result that is an error, not as a failure (D18)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { result } = await execute(test, session, { parameters: { cmd: "print out err 3" } });
    expect(result).toMatchObject({ content: "out\nerr", isError: true, exitCode: 3, exitReason: "exited", tier: 2 });
  });

  it("keeps the first part of a long output and counts the rest", async () => {
    await using test = await startTestHost({ toolOutput: 10 });
    const session = await test.create();
    const { result } = await execute(test, session, { parameters: { cmd: "echo 0123456789abcdef" } });
    expect(result.stdout).toEqual({ totalBytes: 17, truncatedBytes: 7 });
    expect(result.content).toBe("0123456789\n[7 more bytes of stdout are not shown]");
  });

  it("streams every byte, whatever the result keeps", async () => {
    await using test = await startTestHost({ toolOutput: 4 });
    const session = await test.create();
    const reader = new FrameReader({ clock: test.host.clock, slowReader: "wait" });
    const reading = read(reader);
    const onOutput = (journal: OutputJournal): void => {
      reader.bind(journal);
    };
    await execute(test, session, { parameters: { cmd: "echo 0123456789" }, onOutput });
    reader.finish();
    expect(await reading).toBe("0123456789\n");
  });

  it("ends at its timeout with exit code 124", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { result } = await execute(test, session, { parameters: { cmd: "sleep", timeout_ms: 50 } });
    expect(result).toMatchObject({ exitCode: 124, exitReason: "timed_out", isError: true });
  });

  it("gives a command the session's environment and its own, and nothing of the host's (D19)", async () => {
    await using test = await startTestHost();
    const session = await test.create({ env: { OF_SESSION: "s", BOTH: "session" } });
    const { result } = await execute(test, session, { parameters: { cmd: "env", env: { BOTH: "call" } } });
    const names = result.content.split("\n").map((line) => line.split("=")[0]);
    expect(result.content).toContain("OF_SESSION=s\n");
    expect(result.content).toContain("BOTH=call\n");
    expect(names.filter((name) => name !== "").sort()).toEqual([
      "BOTH",
      "HOME",
      "LANG",
      "OF_SESSION",
      "PATH",
      "PWD",
      "TERM",
      "USER",
    ]);
  });

  it("names the parameter and the rule of bad input, and unknown tools and parameters", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const rule = async (more: Partial<ToolCall>) =>
      await execute(test, session, more).then(
        () => "",
        (thrown: unknown) => String(thrown),
      );
    expect(await rule({ toolName: "rm_rf" })).toContain('there is no tool "rm_rf"');
    expect(await rule({ parameters: {} })).toContain("params.cmd: is required");
    expect(await rule({ parameters: { cmd: "" } })).toContain("params.cmd: must not be empty");
    expect(await rule({ parameters: { cmd: "a\0b" } })).toContain("NUL");
    expect(await rule({ parameters: { cmd: "x", timeout_ms: 0 } })).toContain("params.timeout_ms: must be from 1");
    expect(await rule({ parameters: { cmd: "x", timeout_ms: 1.5 } })).toContain("whole number");
    expect(await rule({ parameters: { cmd: "x", shell: "zsh" } })).toContain(
      "params.shell: is not a parameter of tool bash",
    );
    expect(await rule({ parameters: { cmd: "x", env: { "A-B": "c" } } })).toContain("params.env: names must be");
    expect(await rule({ parameters: { cmd: "x", __proto__x: 1 } })).toContain("is not a parameter");
    expect(await rule({ callId: "" })).toContain("tool_call_id");
    expect((await execute(test, session, { toolName: "Bash" })).result.content).toBe("hi\n");
  });
});
