import { holdsVerb, type Principal, SandboxError } from "@turnbox/core";
import type { NetworkPolicy } from "../network-policy/policy.ts";
import { whyWider } from "../network-policy/wider.ts";
import type { SessionRow } from "../record/row.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";

/** `any`: also more than the parent has. `parents`: at most that. */
export interface ForkRights {
  readonly network: "any" | "parents";
  readonly limits: "any" | "parents";
}

/** Who speaks for a tenant may give children what it likes; the token of one sandbox gives them what that sandbox has. */
export function forkRights(caller: Principal): ForkRights {
  if (caller.sandbox === undefined) return { network: "any", limits: "any" };
  return { network: holdsVerb(caller, "network") ? "any" : "parents", limits: "parents" };
}

/** What children are given, and who gives it. */
interface Given {
  readonly rights: ForkRights;
  readonly limits: ContainerLimits;
  readonly networkPolicy: NetworkPolicy | null;
}

const LIMITS = [
  ["cpus", "resources.cpus"],
  ["memoryBytes", "resources.memory_bytes"],
  ["pids", "resources.pids"],
] as const;

/** Throws `PERMISSION_DENIED` if children would have more than their maker can give them. */
export function assertNoWider(parent: SessionRow, { rights, limits, networkPolicy }: Given): void {
  if (rights.limits === "parents") {
    for (const [key, field] of LIMITS) {
      const bound = parent.limits[key];
      if (bound !== undefined && (limits[key] ?? 0) > bound) throw denied(field, "is more than the parent has");
    }
  }
  if (rights.network === "any" || networkPolicy === null) return;
  const wider = whyWider(networkPolicy, parent.networkPolicy);
  if (wider !== undefined) throw denied(`network_policy.${wider}`, "allows more than the parent's policy");
}

function denied(field: string, rule: string): SandboxError {
  const message = `${field}: ${rule}, and the caller's token is bound to the parent`;
  return new SandboxError("PERMISSION_DENIED", message, { metadata: { field } });
}
