import { SandboxError } from "@turnbox/core";

/** The refusal of a write that was made under a lease which has passed on. */
export const staleEpoch = (epoch: number | undefined): SandboxError =>
  new SandboxError("EPOCH_STALE", `the lease of epoch ${String(epoch)} has passed to another orchestrator`);
