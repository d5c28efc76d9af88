import { SandboxError } from "@turnbox/client";
import { PERSISTENCE_MODES, type PersistenceMode } from "../profile/resolved.ts";
import type { ProviderState, SandboxIdentity, SessionState } from "../provider.ts";

/** Raised when the shape below changes; another one is not read. */
const VERSION = 1;

/** What this provider keeps in a session's state. */
export interface TurnboxState extends ProviderState {
  readonly version: typeof VERSION;
  readonly localRootDir: string;
  readonly localAdditionalDirs: readonly string[];
  readonly persistence: PersistenceMode;
}

export function createTurnboxState({ localRootDir, localAdditionalDirs, sandbox }: SandboxIdentity): TurnboxState {
  return { version: VERSION, localRootDir, localAdditionalDirs, persistence: sandbox.persistence };
}

export function parseTurnboxState({ providerState, sandboxId }: SessionState): TurnboxState {
  if (isTurnboxState(providerState)) return providerState;
  const found = providerState === undefined ? "there is none" : `it has version ${String(providerState.version)}`;
  throw new SandboxError("INVALID_STATE", `the provider's part of the state of ${sandboxId} cannot be read: ${found}`, {
    metadata: { sandboxId },
  });
}

function isTurnboxState(value: ProviderState | undefined): value is TurnboxState {
  if (value?.version !== VERSION) return false;
  const directories = value["localAdditionalDirs"];
  return (
    typeof value["localRootDir"] === "string" &&
    Array.isArray(directories) &&
    directories.every((one) => typeof one === "string") &&
    (PERSISTENCE_MODES as readonly unknown[]).includes(value["persistence"])
  );
}
