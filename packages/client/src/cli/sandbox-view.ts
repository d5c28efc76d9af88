import { create } from "@bufbuild/protobuf";
import { durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Sandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { OnTimeout, SessionSchema, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";

/** The documented shape of a sandbox under `--json`. */
export interface SandboxView {
  readonly sandboxId: string;
  readonly name: string;
  readonly state: string;
  readonly template: string;
  readonly generation: number;
  readonly turnCount: number;
  readonly snapshotCount: number;
  readonly spaceUsedBytes: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string | null;
  readonly expiresAt: string | null;
  readonly idleTimeoutMs: number | null;
  readonly onTimeout: string;
  /** Why it failed; null in every other state. */
  readonly failure: string | null;
  readonly address: string;
}

export function toSandboxView({ sandboxId, name, address, session = create(SessionSchema) }: Sandbox): SandboxView {
  return {
    sandboxId,
    name,
    state: enumWord(SessionState[session.state]),
    template: session.base,
    generation: session.generation,
    turnCount: session.turnCount,
    snapshotCount: session.snapshotCount,
    spaceUsedBytes: Number(session.spaceUsedBytes),
    labels: session.labels,
    createdAt: toIso(session.createdAt),
    expiresAt: toIso(session.expiresAt),
    idleTimeoutMs: session.idleTimeout === undefined ? null : durationMs(session.idleTimeout),
    onTimeout: session.onTimeout === OnTimeout.PAUSE ? "pause" : "destroy",
    failure: session.failure === "" ? null : session.failure,
    address,
  };
}

export const toIso = (timestamp: Timestamp | undefined): string | null =>
  timestamp === undefined ? null : new Date(timestampMs(timestamp)).toISOString();

/** The lower-case word of an enum's name; a value of a newer server has none. */
export const enumWord = (name: string | undefined): string => {
  const word = (name ?? "unknown").toLowerCase();
  return word === "unspecified" ? "unknown" : word;
};

/** A template version for people: the digest is cut to what identifies it. */
export const shortTemplate = (template: string): string => template.replace(/@([0-9a-f]{12})[0-9a-f]+$/, "@$1");
