import { ERROR_TABLE, isReason, SandboxError } from "@turnbox/core";

/**
 * The failure of a service's program by what it printed last on stderr: `REASON: message`, and under it `remedy: ...`, which
 * is kept if it is the program's own. `otherwise` is said if it printed no such thing.
 */
export function parseProgramFailure(stderr: string, otherwise: string): SandboxError {
  const lines = stderr.split("\n");
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const [, reason = "", message = ""] = /^([A-Z][A-Z_]+): (.*)$/.exec(lines[index] ?? "") ?? [];
    if (!isReason(reason)) continue;
    const remedy = /^remedy: (.+)$/.exec(lines[index + 1] ?? "")?.[1];
    const isOwn = remedy !== undefined && remedy !== ERROR_TABLE[reason].remedy;
    return new SandboxError(reason, message, isOwn ? { metadata: { remedy } } : {});
  }
  return new SandboxError("INTERNAL", otherwise);
}
