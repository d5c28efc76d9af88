import type { SandboxError } from "@turnbox/client";
import type { ProviderCall } from "../provider.ts";
import type { SessionRecord } from "./session-record.ts";

/** Which states are listed. */
export interface ListSessionsOptions extends ProviderCall {
  /** Told of a session that cannot be read, which is then left out; without it, `list` fails. */
  readonly onUnreadable?: (error: SandboxError) => void;
}

/** Where sessions are remembered. What was saved is there after a crash of the program, whole. */
export interface SessionStateStore {
  /** Replaces what is there of the session. */
  save(record: SessionRecord, options?: ProviderCall): Promise<void>;
  load(sessionId: string, options?: ProviderCall): Promise<SessionRecord | undefined>;
  list(options?: ListSessionsOptions): Promise<readonly SessionRecord[]>;
  /** Without effect if there is none. */
  remove(sessionId: string, options?: ProviderCall): Promise<void>;
}
