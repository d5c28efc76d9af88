import { createHash } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import { type Clock, SandboxError, type ToolDescription } from "@turnbox/client";
import { remedyForModel, toErrorResult } from "./result/error-result.ts";
import { fromToolResult } from "./result/tool-result.ts";
import { sealTurn } from "./tool/auto-turn.ts";
import { callHostTool } from "./tool/host-tool.ts";
import { OWN_TOOLS } from "./tool/own-tools.ts";
import type { ProgressReport } from "./tool/progress.ts";
import { hintsOf } from "./tool/tool-hints.ts";
import type { Workspace } from "./workspace.ts";

/** What a model reads about the server before it calls anything. */
const INSTRUCTIONS = [
  "These tools work in a Turnbox sandbox: an isolated Linux machine with files of its own. Nothing done there touches the",
  "user's machine. Relative paths begin in /workspace. Files and background processes stay between calls; the state of a shell",
  "(cd, variables) does not.",
  "Every turn is a snapshot of all files: call `turn` when a step is done and before anything risky. `turns` lists them,",
  "`diff` shows what changed since one. `rollback` brings all files back to a turn and stops running processes; nothing is",
  "lost by it, because `undo` takes the last rollback back.",
  "To try several ways at once, call `fork`: it makes copies of the sandbox, from now or from a turn. `use_sandbox` says in",
  "which of them the following calls work, and `discard_fork` removes one that is no longer needed.",
].join(" ");

export interface McpServerSpec {
  readonly version: string;
  /** Names the session of the protocol; no two have the same. */
  readonly sessionId: string;
  readonly workspace: Workspace;
  /** The catalog without a sandbox, if it can be had; otherwise listing the tools makes the sandbox. */
  readonly catalog?: (options: { readonly signal: AbortSignal }) => Promise<readonly ToolDescription[] | undefined>;
  /** When turns are sealed: where the model says so, or after each call that may have changed something as well. */
  readonly turns: "by the model" | "after each call";
  readonly clock: Clock;
  readonly onProblem: (message: string) => void;
}

interface Call {
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly toolCallId: string;
  readonly signal: AbortSignal;
  readonly report?: (report: ProgressReport) => Promise<void>;
}

/** A server of the Model Context Protocol for one session. Its owner connects it, closes it, and ends the workspace. */
export function createMcpServer(spec: McpServerSpec): McpServer {
  const { workspace, clock, onProblem } = spec;
  const mcp = new McpServer(
    { name: "turnbox", title: "Turnbox", version: spec.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  const listCatalog = createCatalog(spec);

  const call = async ({ name, params, toolCallId, signal, report }: Call): Promise<CallToolResult> => {
    const own = OWN_TOOLS.get(name);
    if (own !== undefined) return await own.call(params, { workspace, toolCallId, signal });
    const tool = (await listCatalog({ signal })).find((one) => one.name === name);
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `there is no tool ${JSON.stringify(name)}`);
    const sandbox = await workspace.current({ signal });
    const reporting = report === undefined ? {} : { report };
    const result = await callHostTool({ sandbox, name, params, toolCallId, clock, signal, ...reporting });
    const answer = fromToolResult(result, sandbox.id);
    return spec.turns === "after each call" && !tool.readOnly
      ? await sealTurn(answer, { sandbox, toolCallId, signal })
      : answer;
  };

  mcp.server.setRequestHandler(ListToolsRequestSchema, async (_, extra) => {
    try {
      const catalog = await listCatalog({ signal: requestSignal(extra.signal) });
      return { tools: [...catalog.map(toMcpTool), ...[...OWN_TOOLS.values()].map(({ definition }) => definition)] };
    } catch (thrown) {
      throw toProtocolError(SandboxError.from(thrown));
    }
  });

  mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { requestId, _meta } = extra;
    const progressToken = _meta?.progressToken;
    const report = async (progress: ProgressReport): Promise<void> => {
      if (progressToken === undefined) return;
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, ...progress } });
    };
    try {
      return await call({
        name: params.name,
        params: params.arguments ?? {},
        toolCallId: toolCallIdOf(spec.sessionId, requestId),
        signal: requestSignal(extra.signal),
        ...(progressToken === undefined ? {} : { report }),
      });
    } catch (thrown) {
      if (thrown instanceof McpError) throw thrown;
      return toErrorResult(named(thrown));
    }
  });
  mcp.server.onerror = (error) => {
    onProblem(error.message);
  };
  return mcp;
}

/** Asked for once; the tools of a sandbox do not change. */
function createCatalog({ workspace, catalog }: McpServerSpec) {
  let known: readonly ToolDescription[] | undefined;
  return async ({ signal }: { readonly signal: AbortSignal }): Promise<readonly ToolDescription[]> => {
    const early = known ?? (workspace.state === "empty" ? await catalog?.({ signal }) : undefined);
    known = early ?? [...(await (await workspace.current({ signal })).tools({ signal }))];
    return known;
  };
}

/** Schemas pass as the sandbox-host has them. */
function toMcpTool(tool: ToolDescription): Tool {
  const { name, description, inputSchema } = tool;
  return { name, description, inputSchema: { ...inputSchema, type: "object" }, annotations: hintsOf(tool) };
}

function toProtocolError(error: SandboxError): McpError {
  const { reason, message, retryable } = error;
  return new McpError(ErrorCode.InternalError, `${reason}: ${message}. ${remedyForModel(error)}`, {
    reason,
    retryable,
  });
}

/** An unexpected failure is reported in its own words: there is no log to look it up in. */
function named(thrown: unknown): SandboxError {
  const error = SandboxError.from(thrown);
  if (error === thrown || error.reason !== "INTERNAL" || !(thrown instanceof Error)) return error;
  return new SandboxError("INTERNAL", thrown.message, { cause: thrown });
}

/**
 * A signal that ends with the other one, as an abort. The protocol hands over the client's own words as the reason, which
 * are no error, and could not be distinguished from a failure.
 */
function requestSignal(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(new DOMException("the client cancelled the request", "AbortError"));
  };
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}

/** What names a call in its session: an id of the protocol. */
type RequestId = string | number;

/**
 * The id of a tool call: the same for the same request of the same session, so that a request that is sent again is one
 * call, and another for everything else. Request ids are the client's own words, of any length, hence the digest.
 */
export function toolCallIdOf(sessionId: string, requestId: RequestId): string {
  const named = JSON.stringify([sessionId, requestId]);
  return `mcp-${createHash("sha256").update(named).digest("hex").slice(0, 32)}`;
}
