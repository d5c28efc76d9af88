import type { Clock, Secret } from "@turnbox/client";
import type { PrepareRequest, Provider, SessionState } from "../provider.ts";
import type { Registry } from "../registry.ts";
import type { SessionRecord } from "../state/session-record.ts";
import type { SessionStateStore } from "../state/session-state-store.ts";

/** What the flow of a session needs. */
export interface SessionOptions {
  readonly registry: Registry;
  readonly store: SessionStateStore;
  readonly clock?: Clock;
  /** Makes sandbox ids; random ones unless given. */
  readonly newSandboxId?: () => string;
  /** Told of what went wrong without ending anything. */
  readonly onWarning?: (warning: SessionWarning) => void;
}

/** Something that went wrong and did not end the session. */
export interface SessionWarning {
  readonly sessionId: string;
  readonly message: string;
}

/** What is given anew each time, since it is not kept. */
export interface SessionSecrets {
  readonly agentEnv?: Readonly<Record<string, string>>;
  readonly secretEnv?: Readonly<Record<string, Secret>>;
}

/** How long cleaning up may take once the caller's own signal has ended. */
export const CLEANUP_MS = 60_000;

/** The request that a record and its secrets make. */
export function toPrepareRequest(
  record: SessionRecord,
  { agentEnv = {}, secretEnv = {} }: SessionSecrets,
): PrepareRequest {
  const { secretEnvNames: _names, ...profile } = record.sandbox;
  return {
    sessionId: record.sessionId,
    workspaceId: record.workspaceId,
    sandboxId: record.state.sandboxId,
    instanceId: record.state.instanceId,
    localRootDir: record.localRootDir,
    localAdditionalDirs: record.localAdditionalDirs,
    sandbox: { ...profile, secretEnv },
    agentCommand: record.agentCommand,
    agentEnv,
    permissions: record.permissions,
    resumeAcpState: record.resumeAcpState,
    providerState: record.state.providerState,
  };
}

/** Ends the runtime as the profile says; `destroyOnStop` counts more than a persistence that would keep it. */
export async function endRuntime(
  provider: Provider,
  { sandbox, state }: Pick<SessionRecord, "sandbox" | "state">,
  { signal }: { readonly signal?: AbortSignal | undefined },
): Promise<SessionState> {
  if (!sandbox.destroyOnStop) return { ...state, state: "stopped" };
  return await provider.destroy(state, {
    ...(sandbox.persistence === "reuse" ? { persistence: "transient" as const } : {}),
    ...(signal === undefined ? {} : { signal }),
  });
}
