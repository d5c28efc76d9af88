import { SandboxError, type SandboxState } from "@turnbox/client";
import { invalidArgument, parseSessionId } from "@turnbox/client/internal";
import type { EnvironmentConfig, ToolProgress, ToolRequest, ToolResponse } from "../execution-environment.ts";
import { type FakeFiles, runFakeBash } from "./fake-bash.suite.ts";

export interface FakeSession {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  state: SandboxState;
  files: FakeFiles;
  generation: number;
  readonly snapshots: Map<string, FakeFiles>;
  /** Ends what runs in it. */
  readonly ending: AbortController;
  readonly running: Set<Promise<unknown>>;
}

export interface FakeCall {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ToolProgress) => void;
}

/** Sessions in memory, with a provider's own reasons for what it refuses. */
export interface FakeSessions {
  readonly sessions: Map<string, FakeSession>;
  create(config: EnvironmentConfig): FakeSession;
  get(id: string): FakeSession;
  pause(id: string): Promise<void>;
  resume(id: string): void;
  destroy(id: string): void;
  snapshot(id: string): string;
  rollback(id: string, snapshotId: string): void;
  execute(id: string, request: ToolRequest, call: FakeCall): Promise<ToolResponse>;
}

export function createFakeSessions({ maxSessions = 100 } = {}): FakeSessions {
  const sessions = new Map<string, FakeSession>();
  let snapshotCount = 0;

  const get = (id: string): FakeSession => {
    const session = sessions.get(id);
    if (session === undefined) throw new SandboxError("SESSION_NOT_FOUND", `no session ${id}`);
    return session;
  };

  return {
    sessions,
    get,
    create: ({ sessionId, labels = {}, baseImage = "mini" }) => {
      parseSessionId(sessionId);
      if (baseImage !== "mini") throw new SandboxError("TEMPLATE_NOT_FOUND", `no template ${baseImage}`);
      if (sessions.has(sessionId)) throw new SandboxError("SESSION_EXISTS", `${sessionId} exists`);
      if (sessions.size >= maxSessions) throw new SandboxError("MAX_SESSIONS_REACHED", "the host is full");
      const session: FakeSession = {
        id: sessionId,
        labels,
        state: "active",
        files: new Map(),
        generation: 1,
        snapshots: new Map(),
        ending: new AbortController(),
        running: new Set(),
      };
      sessions.set(sessionId, session);
      return session;
    },
    pause: async (id) => {
      const session = get(id);
      session.state = "paused";
      await Promise.allSettled(session.running);
    },
    resume: (id) => {
      get(id).state = "active";
    },
    destroy: (id) => {
      sessions.get(id)?.ending.abort(new SandboxError("SESSION_DESTROYING", `${id} is being destroyed`));
      sessions.delete(id);
    },
    snapshot: (id) => {
      const session = get(id);
      snapshotCount += 1;
      session.snapshots.set(`snap${String(snapshotCount)}`, new Map(session.files));
      return `snap${String(snapshotCount)}`;
    },
    rollback: (id, snapshotId) => {
      const session = get(id);
      const files = session.snapshots.get(snapshotId);
      if (files === undefined) throw new SandboxError("SNAPSHOT_NOT_FOUND", `no snapshot ${snapshotId}`);
      session.files = new Map(files);
      session.generation += 1;
    },
    execute: async (id, request, { signal, onProgress }) => {
      const session = get(id);
      if (session.state === "paused") throw new SandboxError("SESSION_PAUSED", `${id} is paused`);
      const run = runTool(session, request, { signal: AbortSignal.any([signal, session.ending.signal]), onProgress });
      session.running.add(run);
      try {
        return await run;
      } finally {
        session.running.delete(run);
      }
    },
  };
}

const TIER_OF: Readonly<Record<string, 1 | 2>> = {
  bash: 2,
  write_file: 1,
  read_file: 1,
  edit_file: 1,
  list_dir: 1,
  glob: 1,
  grep: 1,
};
const PARAMS_OF: Readonly<Record<string, readonly string[]>> = {
  bash: ["cmd"],
  write_file: ["path", "content", "create_dirs"],
  read_file: ["path"],
  edit_file: ["path", "old_string", "new_string"],
  list_dir: ["path"],
  glob: ["pattern"],
  grep: ["pattern"],
};

async function runTool(session: FakeSession, request: ToolRequest, call: FakeCall): Promise<ToolResponse> {
  const { toolName, toolCallId, params, timeoutMs } = request;
  const tier = TIER_OF[toolName];
  if (tier === undefined) throw new SandboxError("TOOL_NOT_FOUND", `no tool ${toolName}`);
  for (const name of Object.keys(params))
    if (PARAMS_OF[toolName]?.includes(name) !== true) throw invalidArgument(`params.${name}`, "is not known");
  const text = (name: string): string => (typeof params[name] === "string" ? params[name] : "");
  const outcome =
    toolName === "bash"
      ? await runFakeBash(text("cmd"), { files: session.files, timeoutMs, ...call })
      : { ...fileTool(session.files, toolName, text), exitCode: undefined, exitReason: "exited" as const };
  const isError = "isError" in outcome ? outcome.isError : outcome.exitCode !== 0;
  return {
    toolCallId,
    content: outcome.content,
    blocks: [{ type: "text", text: outcome.content }],
    isError,
    exitCode: outcome.exitCode,
    exitReason: outcome.exitReason,
    snapshotId: undefined,
    durationMs: 0,
    tier,
    generation: session.generation,
    replayed: false,
  };
}

function fileTool(
  files: FakeFiles,
  toolName: string,
  text: (name: string) => string,
): { readonly content: string; readonly isError: boolean } {
  const names = [...files.keys()].join("\n");
  const content = files.get(text("path"));
  if (toolName === "list_dir" || toolName === "glob") return { content: names, isError: false };
  if (toolName === "grep") {
    const lines = [...files].flatMap(([path, file]) =>
      file
        .split("\n")
        .flatMap((line, index) => (line.includes(text("pattern")) ? [`${path}:${String(index + 1)}:${line}`] : [])),
    );
    return { content: lines.join("\n"), isError: false };
  }
  if (toolName === "write_file") {
    files.set(text("path"), text("content"));
    return { content: "written", isError: false };
  }
  if (content === undefined) return { content: `there is no ${text("path")}`, isError: true };
  if (toolName === "read_file") return { content, isError: false };
  files.set(text("path"), content.replace(text("old_string"), text("new_string")));
  return { content: "replaced", isError: !content.includes(text("old_string")) };
}
