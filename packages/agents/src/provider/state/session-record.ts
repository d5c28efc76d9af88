import type { PrepareRequest, Resolved, SessionState } from "../provider.ts";

/** Where a session is in its life. The first three are worth taking up again after a crash of the program. */
export type SessionStatus = "starting" | "active" | "stopping" | "stopped" | "crashed";

const RECOVERABLE: ReadonlySet<SessionStatus> = new Set(["starting", "active", "stopping"]);
export const isRecoverable = (status: SessionStatus): boolean => RECOVERABLE.has(status);

/** What is kept of a profile: of its secrets only the names. */
export type StoredProfile = Omit<Resolved, "secretEnv"> & { readonly secretEnvNames: readonly string[] };

/**
 * All that is kept of a session, so that another run of the program can find its runtime. Neither the agent's variables
 * nor secrets are in it: the caller that takes a session up gives them again.
 */
export interface SessionRecord {
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly status: SessionStatus;
  readonly localRootDir: string;
  readonly localAdditionalDirs: readonly string[];
  readonly sandbox: StoredProfile;
  readonly agentCommand: string;
  readonly permissions: PrepareRequest["permissions"];
  readonly resumeAcpState: string;
  readonly excludePatterns: readonly string[];
  readonly state: SessionState;
  readonly updatedAt: Date;
}

export function toStoredProfile({ secretEnv, ...rest }: Resolved): StoredProfile {
  return { ...rest, secretEnvNames: Object.keys(secretEnv).sort() };
}
