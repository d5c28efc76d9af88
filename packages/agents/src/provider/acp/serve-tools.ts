import type { ClientApp, EnvVariable } from "@agentclientprotocol/sdk";
import type { ToolHost } from "../tool-host/tool-host.ts";
import type { Acp } from "./acp.ts";
import { given } from "./given.ts";
import type { AgentPermissions } from "./agent-permissions.ts";
import { toRequestError } from "./request-error.ts";

interface ServeToolsParts {
  readonly acp: Acp;
  readonly toolHost: ToolHost;
  readonly permissions: AgentPermissions;
  /** Ends when the session's turn is cancelled. */
  readonly turnSignal: (sessionId: string) => AbortSignal | undefined;
}

type Answering = <Context, Answer>(
  handle: (context: Context) => Promise<Answer>,
) => (context: Context) => Promise<Answer>;

/** Serves an agent's requests for files, terminals and permissions from a tool host. */
export function serveTools(app: ClientApp, parts: ServeToolsParts): void {
  /** The handler, with its failures in the form that the agent gets. */
  const answering: Answering = (handle) => async (context) => {
    try {
      return await handle(context);
    } catch (thrown) {
      throw toRequestError(parts.acp, thrown);
    }
  };
  servePermissions(app, parts, answering);
  serveFiles(app, parts, answering);
  serveTerminals(app, parts, answering);
}

function servePermissions(
  app: ClientApp,
  { acp, permissions, turnSignal }: ServeToolsParts,
  answering: Answering,
): void {
  app.onRequest(
    acp.methods.client.session.requestPermission,
    answering(async ({ params, signal }) => {
      const turn = turnSignal(params.sessionId);
      return await permissions.answer(params, turn === undefined ? signal : AbortSignal.any([signal, turn]));
    }),
  );
}

function serveFiles(app: ClientApp, { acp, permissions, toolHost }: ServeToolsParts, answering: Answering): void {
  const { fs } = acp.methods.client;
  app
    .onRequest(
      fs.readTextFile,
      answering(async ({ params: { sessionId, path, line, limit }, signal }) => {
        await permissions.permit({ sessionId, operation: "fs/read_text_file", path, title: `Read ${path}` }, signal);
        const range = given({ line, limit });
        return { content: await toolHost.readTextFile(path, { ...range, signal }) };
      }),
    )
    .onRequest(
      fs.writeTextFile,
      answering(async ({ params: { sessionId, path, content }, signal }) => {
        await permissions.permit({ sessionId, operation: "fs/write_text_file", path, title: `Write ${path}` }, signal);
        await toolHost.writeTextFile(path, content, { signal });
        return {};
      }),
    );
}

function serveTerminals(app: ClientApp, { acp, permissions, toolHost }: ServeToolsParts, answering: Answering): void {
  const { terminal } = acp.methods.client;
  app
    .onRequest(
      terminal.create,
      answering(async ({ params, signal }) => {
        const { sessionId, command, args = [], env = [] } = params;
        const cwd = params.cwd ?? toolHost.root;
        const title = `Run ${[command, ...args].join(" ")}`;
        await permissions.permit({ sessionId, operation: "terminal/create", path: cwd, title }, signal);
        const { outputByteLimit } = params;
        const spec = { command, args, env: toRecord(env), cwd, ...given({ outputByteLimit }) };
        return { terminalId: await toolHost.createTerminal(spec, { signal }) };
      }),
    )
    .onRequest(
      terminal.output,
      answering(async ({ params, signal }) => {
        const { output, truncated, exit } = await toolHost.terminalOutput(params.terminalId, { signal });
        return { output, truncated, ...(exit === undefined ? {} : { exitStatus: toStatus(exit) }) };
      }),
    )
    .onRequest(
      terminal.waitForExit,
      answering(async ({ params, signal }) =>
        toStatus(await toolHost.waitForTerminalExit(params.terminalId, { signal })),
      ),
    )
    .onRequest(
      terminal.kill,
      answering(async ({ params, signal }) => {
        await toolHost.killTerminal(params.terminalId, { signal });
        return {};
      }),
    )
    .onRequest(
      terminal.release,
      answering(async ({ params, signal }) => {
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
