import type { ClientApp, EnvVariable } from "@agentclientprotocol/sdk";
import type { ToolHost } from "../tool-host/tool-host.ts";
import type { Acp } from "./acp.ts";
import { given } from "./given.ts";
import type { PermissionDesk } from "./permission-desk.ts";
import { toRequestError } from "./request-error.ts";

/** Serves an agent's requests for files, terminals and permissions from a tool host. */
export function serveTools(
  app: ClientApp,
  deps: {
    readonly acp: Acp;
    readonly toolHost: ToolHost;
    readonly desk: PermissionDesk;
    /** Ends when the session's turn is cancelled. */
    readonly turnSignal: (sessionId: string) => AbortSignal | undefined;
  },
): void {
  const { acp, toolHost, desk, turnSignal } = deps;
  const { fs, session, terminal } = acp.methods.client;
  /** The handler, with its failures as the agent is told. */
  const told =
    <Context, Answer>(handle: (context: Context) => Promise<Answer>) =>
    async (context: Context): Promise<Answer> => {
      try {
        return await handle(context);
      } catch (thrown) {
        throw toRequestError(acp, thrown);
      }
    };

  app
    .onRequest(
      session.requestPermission,
      told(async ({ params, signal }) => {
        const turn = turnSignal(params.sessionId);
        return await desk.answer(params, turn === undefined ? signal : AbortSignal.any([signal, turn]));
      }),
    )
    .onRequest(
      fs.readTextFile,
      told(async ({ params: { sessionId, path, line, limit }, signal }) => {
        await desk.permit({ sessionId, operation: "fs/read_text_file", path, title: `Read ${path}` }, signal);
        const range = given({ line, limit });
        return { content: await toolHost.readTextFile(path, { ...range, signal }) };
      }),
    )
    .onRequest(
      fs.writeTextFile,
      told(async ({ params: { sessionId, path, content }, signal }) => {
        await desk.permit({ sessionId, operation: "fs/write_text_file", path, title: `Write ${path}` }, signal);
        await toolHost.writeTextFile(path, content, { signal });
        return {};
      }),
    )
    .onRequest(
      terminal.create,
      told(async ({ params, signal }) => {
        const { sessionId, command, args = [], env = [] } = params;
        const cwd = params.cwd ?? toolHost.root;
        const title = `Run ${[command, ...args].join(" ")}`;
        await desk.permit({ sessionId, operation: "terminal/create", path: cwd, title }, signal);
        const { outputByteLimit } = params;
        const spec = { command, args, env: toRecord(env), cwd, ...given({ outputByteLimit }) };
        return { terminalId: await toolHost.createTerminal(spec, { signal }) };
      }),
    )
    .onRequest(
      terminal.output,
      told(async ({ params, signal }) => {
        const { output, truncated, exit } = await toolHost.terminalOutput(params.terminalId, { signal });
        return { output, truncated, ...(exit === undefined ? {} : { exitStatus: toStatus(exit) }) };
      }),
    )
    .onRequest(
      terminal.waitForExit,
      told(async ({ params, signal }) => toStatus(await toolHost.waitForTerminalExit(params.terminalId, { signal }))),
    )
    .onRequest(
      terminal.kill,
      told(async ({ params, signal }) => {
        await toolHost.killTerminal(params.terminalId, { signal });
        return {};
      }),
    )
    .onRequest(
      terminal.release,
      told(async ({ params, signal }) => {
        await toolHost.releaseTerminal(params.terminalId, { signal });
        return {};
      }),
    );
}

const toRecord = (env: readonly EnvVariable[]): Record<string, string> =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]));

const toStatus = (exit: { readonly exitCode: number | undefined; readonly signal: string | undefined }) => ({
  exitCode: exit.exitCode ?? null,
  signal: exit.signal ?? null,
});
