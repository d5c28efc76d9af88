import { agent, type AgentApp, type AgentContext, methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const { fs, session } = methods.client;

/** What a turn of the agent has at hand. */
interface Turn {
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly cwd: string;
  /** Ends when the turn is cancelled. */
  readonly cancelled: AbortSignal;
  say(text: string): Promise<void>;
  /** Asks for an edit of a path; returns the option that was chosen. */
  ask(path: string): Promise<string>;
}

/**
 * What the agent does is the first word of its prompt.
 *
 * - `work`: reads a file, asks, writes another one, counts it in a terminal, and says what came of it.
 * - `write PATH`: writes without asking. `read PATH`: reads. `wait`: asks, and waits for the end of the turn.
 * - `chatter N`: says N words and ends at once. `fail`: refuses. `die`: ends the program.
 */
const SCRIPTS: Readonly<Record<string, (turn: Turn, argument: string) => Promise<void>>> = {
  work,
  write: async ({ client, sessionId, say }, path) => {
    await client.request(fs.writeTextFile, { sessionId, path, content: "written" });
    await say("written");
  },
  read: async ({ client, sessionId, say }, path) => {
    await say((await client.request(fs.readTextFile, { sessionId, path })).content);
  },
  wait: async ({ ask, cwd, say, cancelled }) => {
    await say("waiting");
    const answer = await ask(`${cwd}/never.txt`);
    await say(` ${answer}`);
    if (!cancelled.aborted) await new Promise((resolve) => cancelled.addEventListener("abort", resolve));
  },
  chatter: async ({ say }, count) => {
    for (let word = 0; word < Number(count); word += 1) void say(`${word} `);
  },
  fail: () => Promise.reject(new Error("not today")),
  die: async () => {
    process.stderr.write("last words\n");
    process.exit(3);
  },
};

async function work({ client, sessionId, cwd, say, ask }: Turn): Promise<void> {
  await say("Reading. ");
  const { content } = await client.request(fs.readTextFile, { sessionId, path: `${cwd}/input.txt`, line: 2, limit: 1 });
  const path = `${cwd}/out/result.txt`;
  const answer = await ask(path);
  if (answer !== "yes") {
    await say(`Left alone: ${answer}.`);
    return;
  }
  await client.request(fs.writeTextFile, { sessionId, path, content: content.toUpperCase() });
  const script = 'cat result.txt; printf "%s" "$NOTE" > note.txt; echo counted >&2';
  await using terminal = await client.createTerminal({
    sessionId,
    command: "sh",
    args: ["-c", script],
    env: [{ name: "NOTE", value: "noted" }],
    cwd: `${cwd}/out`,
  });
  const { exitCode } = await terminal.waitForExit();
  const { output } = await terminal.currentOutput();
  await say(`Wrote ${output.trim().split("\n").sort().join(" and ")}, exit ${exitCode ?? "none"}.`);
}

/** A small agent for tests. */
export function createScriptedAgent(): AgentApp {
  const sessions = new Map<string, { readonly cwd: string; turn: AbortController }>();
  return agent({ name: "scripted" })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: "scripted", version: "1" },
    }))
    .onRequest(methods.agent.session.new, ({ params: { cwd } }) => {
      const sessionId = `session-${sessions.size + 1}`;
      sessions.set(sessionId, { cwd, turn: new AbortController() });
      return { sessionId };
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.turn.abort())
    .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
      const state = sessions.get(sessionId)!;
      state.turn = new AbortController();
      const { cwd, turn } = state;
      const say = (text: string) =>
        client.notify(session.update, {
          sessionId,
          update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
        });
      const ask = async (path: string): Promise<string> => {
        const { outcome } = await client.request(session.requestPermission, {
          sessionId,
          toolCall: { toolCallId: "call", title: `Edit ${path}`, kind: "edit", locations: [{ path }] },
          options: [
            { optionId: "yes", name: "Yes", kind: "allow_once" },
            { optionId: "no", name: "No", kind: "reject_once" },
          ],
        });
        return outcome.outcome === "selected" ? outcome.optionId : "cancelled";
      };
      const [first] = prompt;
      const [verb = "", ...rest] = (first?.type === "text" ? first.text : "").split(" ");
      await SCRIPTS[verb]?.({ client, sessionId, cwd, cancelled: turn.signal, say, ask }, rest.join(" "));
      return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
    });
}
