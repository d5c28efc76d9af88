import { newSessionId } from "@turnbox/core";
import type { Blueprint } from "../lifecycle/make.ts";
import { DENY_ALL, needsNetwork, type NetworkPolicy } from "../network-policy/policy.ts";
import type { SessionRow } from "../record/row.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import type { BaseRef } from "../storage/storage.ts";

/** A warm session: made, booted, and not of any tenant. */
export type WarmMember = SessionRow & { readonly container: string };

/** `networked`: it was booted in a network, which leads nowhere yet. The others have only loopback. */
export type WarmKind = "plain" | "networked";

export const WARM_KINDS: readonly WarmKind[] = ["plain", "networked"];

/** Whether an earlier service of this boot left it ready, and no hand-over of it had begun. */
export function isReady(row: SessionRow, bootId: string): row is WarmMember {
  return row.phase.kind === "creating" && row.phase.readyIn === bootId && row.container !== null;
}

export function kindOf({ networkPolicy }: Pick<SessionRow, "networkPolicy">): WarmKind {
  return networkPolicy === null ? "plain" : "networked";
}

/** The kind that a session under this policy is made from: one that may connect to nothing needs no network. */
export function kindFor(policy: NetworkPolicy | null): WarmKind {
  return needsNetwork(policy) ? "networked" : "plain";
}

export function isSameLimits(one: ContainerLimits, other: ContainerLimits): boolean {
  return one.cpus === other.cpus && one.memoryBytes === other.memoryBytes && one.pids === other.pids;
}

export function isOf(member: WarmMember, base: BaseRef): boolean {
  return member.base.name === base.name && member.base.digest === base.digest;
}

/** A session without a tenant: its name is random, and no tenant has the empty name. Its network, if any, leads nowhere. */
export function warmBlueprint(base: BaseRef, kind: WarmKind): Omit<Blueprint, "quotaBytes" | "limits"> {
  return {
    id: newSessionId(),
    tenant: "",
    base,
    origin: { kind: "base", base },
    labels: {},
    env: {},
    time: { ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
    ports: [],
    networkPolicy: kind === "networked" ? DENY_ALL : null,
    forkedFrom: null,
    refquotaBytes: null,
    turnCounter: 0,
  };
}
