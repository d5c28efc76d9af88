import { newSessionId } from "@turnbox/core";
import { DENY_ALL } from "../network-policy/policy.ts";
import type { BaseRef } from "../storage/storage.ts";
import type { Blueprint } from "../lifecycle/make.ts";
import type { WarmKind } from "./member.ts";

/** Nobody's session yet: its name is random, and no tenant has the empty name. A network of its own leads nowhere. */
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
