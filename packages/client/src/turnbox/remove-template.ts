import { randomUUID } from "node:crypto";
import { hasReason } from "@turnbox/core";
import type { OperatorHosts } from "../fleet/operator-hosts.ts";
import type { KeyedOptions } from "../sandbox/call.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { Template } from "./turnbox-types.ts";

/** Removes a version of a template from every host; returns how many had it. */
export async function removeTemplate(
  operator: OperatorHosts,
  { name, digest }: Pick<Template, "name" | "digest">,
  { idempotencyKey = randomUUID(), signal, timeoutMs = DEFAULT_TIMEOUT_MS.change }: KeyedOptions,
): Promise<number> {
  const call = { timeoutMs, ...(signal && { signal }) };
  const hosts = await operator.list(call);
  // Nothing is removed before all are fit.
  operator.assertTrusted("templates are removed", hosts);
  let removed = 0;
  for (const at of hosts) {
    using host = operator.open(at);
    try {
      await host.host.deleteTemplate({ idempotencyKey, name, digest }, call);
      removed += 1;
    } catch (thrown) {
      if (!hasReason(thrown, "TEMPLATE_NOT_FOUND")) throw thrown;
    }
  }
  return removed;
}
