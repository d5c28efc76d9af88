import type { Sandbox, SandboxInfo } from "@turnbox/client";

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

export function toSandboxView(info: SandboxInfo): SandboxView {
  const { id, name, state, base, labels, createdAt, expiresAt, idleTimeoutMs, failure, onTimeout, address } = info;
  const { generation, turnCount, snapshotCount, spaceUsedBytes } = info;
  return {
    sandboxId: id,
    name: name ?? "",
    state,
    template: base,
    generation,
    turnCount,
    snapshotCount,
    spaceUsedBytes,
    labels,
    createdAt: createdAt.toISOString(),
    expiresAt: toIsoDate(expiresAt),
    idleTimeoutMs: idleTimeoutMs ?? null,
    onTimeout,
    failure: failure ?? null,
    address,
  };
}

/** Of a sandbox that was made: what the server said about it, and its id in any case. */
export const toMadeView = ({ id, known }: Pick<Sandbox, "id" | "known">) => ({
  ...(known === undefined ? {} : toSandboxView(known)),
  sandboxId: id,
});

export const toIsoDate = (date: Date | undefined): string | null => date?.toISOString() ?? null;

/** A template version for people: the digest is cut to what identifies it. */
export const shortTemplate = (template: string): string => template.replace(/@([0-9a-f]{12})[0-9a-f]+$/, "@$1");
