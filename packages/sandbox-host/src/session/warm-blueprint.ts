import { newSessionId } from "@turnbox/core";
import type { BaseRef } from "../storage/storage.ts";
import type { Blueprint } from "./make.ts";

/** Nobody's session yet: its name is random, and no tenant has the empty name. */
export function warmBlueprint(base: BaseRef): Omit<Blueprint, "quotaBytes" | "limits"> {
  return {
    id: newSessionId(),
    tenant: "",
    base,
    origin: { kind: "base", base },
    labels: {},
    env: {},
    time: { ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
    ports: [],
    networkPolicy: null,
    forkedFrom: null,
    refquotaBytes: null,
    turnCounter: 0,
  };
}
