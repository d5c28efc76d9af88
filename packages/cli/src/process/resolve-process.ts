import type { ProcessInfo, Sandbox, SandboxProcess } from "@turnbox/client";
import { ambiguous } from "@turnbox/client/internal";
import { invalidArgument, SandboxError } from "@turnbox/core";

export const PROCESS_RULE = "PROC is a process's id of `turnbox ps`, or a unique beginning of it.";

/** The one process of the present generation that is meant: by its id, or by a unique beginning of it. */
export async function resolveProcess(
  sandbox: Sandbox,
  reference: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<SandboxProcess> {
  if (reference === "") throw invalidArgument("process", "must not be empty");
  const processes = await sandbox.processes.list({ signal });
  return sandbox.processes.handle(matchProcess(reference, processes, sandbox.id));
}

function matchProcess(reference: string, processes: readonly ProcessInfo[], sandboxId: string): ProcessInfo {
  const exact = processes.find(({ id }) => id === reference);
  if (exact !== undefined) return exact;
  const matches = processes.filter(({ id }) => id.startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError("PROCESS_NOT_FOUND", `no process of ${sandboxId} is called ${reference}`, {
      metadata: { reference, sandboxId },
    });
  }
  if (others.length === 0) return first;
  throw ambiguous(
    "process",
    reference,
    matches.map(({ id }) => id),
  );
}
