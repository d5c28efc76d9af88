import { randomUUID } from "node:crypto";
import { type Json, Refusal, type TestHost } from "./host.ts";

export interface SeenSession {
  readonly sessionId: string;
  readonly state: string;
  readonly generation: number;
  readonly turnCount?: number;
  readonly snapshotCount?: number;
  readonly parentSnapshotId?: string;
  readonly spaceUsedBytes?: string;
}

export interface SeenSnapshot {
  readonly snapshotId: string;
  readonly kind: string;
  readonly turnNumber?: number;
  readonly turnKey?: string;
  readonly name?: string;
  readonly parentSnapshotId?: string;
  readonly head?: boolean;
}

export interface SeenTurn {
  readonly snapshotId: string;
  readonly turnNumber: number;
  readonly unchanged?: boolean;
}

export async function createSession(host: TestHost, sessionId: string, more: Json = {}): Promise<SeenSession> {
  return (await host.call("SessionService/CreateSession", { sessionId, ...more }))["session"] as SeenSession;
}

export async function getSession(host: TestHost, sessionId: string): Promise<SeenSession> {
  return (await host.call("SessionService/GetSession", { sessionId }))["session"] as SeenSession;
}

export interface Ran {
  readonly content: string;
  readonly exitCode: number;
  readonly exitReason: string;
}

/** Runs a script in the session, whatever its exit code. */
export async function bash(host: TestHost, sessionId: string, cmd: string, more: Json = {}): Promise<Ran> {
  const toolCallId = randomUUID();
  const call = { sessionId, toolCallId, toolName: "bash", params: { cmd }, ...more };
  const ran = await host.call("ToolService/ExecuteTool", call);
  return {
    content: (ran["content"] ?? "") as string,
    exitCode: Number(ran["exitCode"] ?? -1),
    exitReason: String(ran["exitReason"]),
  };
}

/** Runs a script that must succeed; answers with its output. */
export async function script(host: TestHost, sessionId: string, cmd: string): Promise<string> {
  const { content, exitCode } = await bash(host, sessionId, cmd);
  if (exitCode !== 0) throw new Error(`${cmd}: exit ${exitCode}: ${content}`);
  return content;
}

export async function completeTurn(host: TestHost, sessionId: string, turnKey = ""): Promise<SeenTurn> {
  return (await host.call("SnapshotService/TurnComplete", { sessionId, turnKey })) as unknown as SeenTurn;
}

/** Answers with the undo snapshot's id. */
export async function rollBack(host: TestHost, sessionId: string, snapshotId: string): Promise<string> {
  const answer = await host.call("SnapshotService/RollbackSession", { sessionId, snapshotId });
  return String(answer["undoSnapshotId"]);
}

export interface SeenFork {
  readonly snapshotId: string;
  readonly children: readonly SeenSession[];
}

/** Forks; every child must have been made. */
export async function fork(host: TestHost, sessionId: string, more: Json = {}): Promise<SeenFork> {
  const answer = await host.call("SessionService/ForkSession", { sessionId, ...more });
  const results = answer["results"] as readonly { readonly session?: SeenSession; readonly message?: string }[];
  const children = results.map(({ session, message }) => {
    if (session === undefined) throw new Error(`a child was not made: ${message ?? ""}`);
    return session;
  });
  return { snapshotId: String(answer["snapshotId"]), children };
}

/** A session that is gone already is destroyed. */
export async function destroy(host: TestHost, sessionId: string): Promise<void> {
  await host.call("SessionService/DestroySession", { sessionId }).catch((thrown: unknown) => {
    if (!(thrown instanceof Refusal) || thrown.reason !== "SESSION_NOT_FOUND") throw thrown;
  });
}

export async function listSessions(host: TestHost): Promise<readonly SeenSession[]> {
  return await listAll<SeenSession>(host, "SessionService/ListSessions", {}, "sessions");
}

export async function listSnapshots(host: TestHost, sessionId: string): Promise<readonly SeenSnapshot[]> {
  return await listAll<SeenSnapshot>(host, "SnapshotService/ListSnapshots", { sessionId }, "snapshots");
}

async function listAll<Item>(host: TestHost, method: string, body: Json, field: string): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let pageToken = ""; ; ) {
    const answer = await host.call(method, { ...body, page: { pageSize: 1000, pageToken } });
    items.push(...((answer[field] ?? []) as readonly Item[]));
    pageToken = (answer["page"] as { readonly nextPageToken?: string } | undefined)?.nextPageToken ?? "";
    if (pageToken === "") return items;
  }
}

export interface SeenHealth {
  readonly status: string;
  readonly poolState: string;
  readonly errors?: readonly string[];
  readonly sessionCount?: number;
  readonly backgroundDestroys?: readonly Json[];
  readonly poolSpace?: { readonly usedBytes?: string; readonly sizeBytes?: string; readonly availableBytes?: string };
}

export async function health(host: TestHost): Promise<SeenHealth> {
  return (await host.call("HostService/HealthCheck")) as unknown as SeenHealth;
}

/** A digest of all files of the session with names, modes, owners and times; the same tree gives the same digest. */
export async function digest(host: TestHost, sessionId: string, directory = "/workspace"): Promise<string> {
  const listing = "find . -exec stat -c '%n %F %a %u %g %s %Y' {} + | sort | sha256sum";
  const contents = "find . -type f -exec sha256sum {} + | sort | sha256sum";
  return await script(host, sessionId, `cd ${directory} && ${listing} && ${contents}`);
}
