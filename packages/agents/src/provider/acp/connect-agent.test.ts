import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ndJsonStream, type RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { createManualClock } from "@turnbox/client/fake";
import type { Handle } from "../launch/launcher.ts";
import { createLocalLauncher } from "../launch/local-launcher.ts";
import type { PermissionMode } from "../tool-host/permission.ts";
import { createLocalToolHost } from "../tool-host/local-tool-host.ts";
import { CANCEL_GRACE_MS } from "./agent-session.ts";
import { connectAgent, type ConnectAgentOptions } from "./connect-agent.ts";
import type { PermissionAnswer } from "./agent-permissions.ts";
import { createScriptedAgent } from "./scripted-agent.suite.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "turnbox-acp-")));
  await writeFile(join(root, "input.txt"), "first\nsecond\nthird\n");
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

/** The scripted agent in this process, as a handle has it. */
function inProcess(): Handle {
  const [toAgent, fromAgent] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  createScriptedAgent().connect(ndJsonStream(fromAgent.writable, toAgent.readable));
  const never = new Promise<never>(() => undefined);
  return {
    pid: 0,
    id: "in-process",
    cwd: root,
    stdin: toAgent.writable,
    stdout: fromAgent.readable,
    stderr: async () => "",
    done: never,
    wait: () => never,
    stop: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function connect(
  permissions: PermissionMode,
  { handle = inProcess(), ...more }: Partial<ConnectAgentOptions> = {},
) {
  const toolHost = createLocalToolHost({ root, permissions });
  const connection = await connectAgent({ handle, toolHost, ...more });
  return { connection, toolHost, session: await connection.newSession() };
}

/** Answers in turn, and remembers what was asked. */
function answering(...answers: readonly PermissionAnswer[]) {
  const asked: RequestPermissionRequest[] = [];
  const onPermission = async (request: RequestPermissionRequest): Promise<PermissionAnswer> => {
    asked.push(request);
    return answers[asked.length - 1] ?? "reject-once";
  };
  return { asked, onPermission };
}

const DONE = "Reading. Wrote SECOND and counted, exit 0.";

describe("connectAgent", () => {
  it("completes a turn: files and a terminal served, everything said heard in order", async () => {
    const heard: string[] = [];
    const { session, connection } = await connect("approve-all", {
      onUpdate: ({ update }) => {
        heard.push(update.sessionUpdate);
        throw new Error("the listener's own affair");
      },
    });
    expect(connection.info.agentInfo?.name).toBe("scripted");
    expect(await session.prompt("work")).toEqual({ stopReason: "end_turn", text: DONE });
    expect(await readFile(join(root, "out/result.txt"), "utf8")).toBe("SECOND\n");
    expect(await readFile(join(root, "out/note.txt"), "utf8")).toBe("noted");
    expect(heard).toEqual(["agent_message_chunk", "agent_message_chunk"]);
    const { text } = await session.prompt("chatter 500");
    expect(text).toBe(Array.from({ length: 500 }, (_, word) => `${word} `).join(""));
  });

  it("asks where the mode leaves it open: what was granted is not asked for again", async () => {
    const { asked, onPermission } = answering("allow-once", "allow-always");
    const { session } = await connect("approve-reads", { onPermission });
    expect((await session.prompt("work")).text).toBe(DONE);
    // The agent asked for the edit; the command was not allowed.
    expect(asked.map(({ toolCall }) => toolCall.kind)).toEqual(["edit", "execute"]);
    expect(asked[1]?.toolCall).toMatchObject({
      title: expect.stringContaining("Run sh -c"),
      locations: [{ path: join(root, "out") }],
    });
    // Always is always, once was once.
    await session.prompt("work");
    expect(asked.map(({ toolCall }) => toolCall.kind)).toEqual(["edit", "execute", "edit"]);
  });

  it("asks for a write that the agent did not ask for, and tells it of the refusal", async () => {
    const { asked, onPermission } = answering("allow-once");
    const { session } = await connect("approve-reads", { onPermission });
    await expect(session.prompt(`write ${root}/other.txt`)).resolves.toMatchObject({ text: "written" });
    await expect(session.prompt(`write ${root}/other.txt`)).rejects.toMatchObject({
      message: expect.stringContaining("fs/write_text_file is not allowed under approve-reads"),
    });
    expect(asked).toHaveLength(2);
  });

  it("refuses if there is no `onPermission`, and everything under deny-all", async () => {
    const careful = await connect("approve-reads");
    expect((await careful.session.prompt("work")).text).toBe("Reading. Left alone: no.");
    const { asked, onPermission } = answering("allow-always");
    const denied = await connect("deny-all", { onPermission });
    for (const prompt of ["work", `write ${root}/x`, `read ${root}/input.txt`])
      await expect(denied.session.prompt(prompt)).rejects.toThrow("not allowed under deny-all");
    expect(asked).toEqual([]);
  });

  it("serves nothing outside of the root, whatever is allowed", async () => {
    const { session } = await connect("approve-all");
    for (const prompt of ["read /etc/passwd", `write ${root}/../x`])
      await expect(session.prompt(prompt)).rejects.toThrow("is outside of");
    await expect(session.prompt(`read ${root}/missing`)).rejects.toThrow("there is no");
    expect((await session.prompt(`read ${root}/input.txt`)).text).toBe("first\nsecond\nthird\n");
  });

  it("cancels a turn when the caller gives up, with the question that was open", async () => {
    const controller = new AbortController();
    const { session } = await connect("approve-reads", {
      onPermission: (_request, { signal }) =>
        new Promise(() => {
          expect(signal.aborted).toBe(false);
          controller.abort();
        }),
    });
    const result = await session.prompt("wait", { signal: controller.signal });
    expect(result).toEqual({ stopReason: "cancelled", text: "waiting cancelled" });
    expect((await session.prompt("chatter 1")).text).toBe("0 ");
  });

  it("runs one turn of a session at a time", async () => {
    const { session } = await connect("approve-all");
    const first = session.prompt("wait");
    await expect(session.prompt("work")).rejects.toMatchObject({ reason: "INVALID_STATE" });
    await session.cancel();
    expect((await first).stopReason).toBe("cancelled");
  });

  it("waits only for so long for an agent that ignores a cancellation", async () => {
    const clock = createManualClock();
    const { session, connection } = await connect("approve-all", { clock });
    connection.agent.notify = async () => undefined;
    const controller = new AbortController();
    const prompt = session.prompt("wait", { signal: controller.signal });
    controller.abort();
    const settled = expect(prompt).rejects.toMatchObject({ reason: "CANCELLED" });
    while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(CANCEL_GRACE_MS);
    await settled;
  });

  it("tells a refusal from an end, with the agent's last words", async () => {
    const { session } = await connect("approve-all");
    await expect(session.prompt("fail")).rejects.toMatchObject({ reason: "INTERNAL" });
    const main = join(import.meta.dirname, "scripted-agent-main.suite.ts");
    await using handle = await createLocalLauncher({ root }).launch({ command: process.execPath, args: [main] });
    const real = await connect("approve-all", { handle });
    expect((await real.session.prompt("work")).text).toBe(DONE);
    await expect(real.session.prompt("die")).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      message: expect.stringMatching(/the agent ended \(exit code 3\) before its answer: [^]*last words/),
    });
  });

  it("says what a program is that is no agent", async () => {
    const toolHost = createLocalToolHost({ root });
    const launcher = createLocalLauncher({ root });
    await using broken = await launcher.launch({ command: "sh", args: ["-c", "echo no agent >&2; exit 2"] });
    await expect(connectAgent({ handle: broken, toolHost })).rejects.toThrow(
      "ended (exit code 2) before its answer: no agent",
    );
    await using mute = await launcher.launch({ command: "sleep", args: ["1000"] });
    const signal = AbortSignal.timeout(10);
    await expect(connectAgent({ handle: mute, toolHost, signal })).rejects.toMatchObject({
      reason: "DEADLINE_EXCEEDED",
    });
  });
});
