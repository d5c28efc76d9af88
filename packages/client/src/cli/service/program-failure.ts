import { isReason, SandboxError } from "@turnbox/core";

/** The failure of a service's program by what it printed last on stderr as `REASON: message`; `otherwise` says the rest. */
export function parseProgramFailure(stderr: string, otherwise: string): SandboxError {
  for (const line of stderr.split("\n").reverse()) {
    const [, reason = "", message = ""] = /^([A-Z][A-Z_]+): (.*)$/.exec(line) ?? [];
    if (isReason(reason)) return new SandboxError(reason, message);
  }
  return new SandboxError("INTERNAL", otherwise);
}
