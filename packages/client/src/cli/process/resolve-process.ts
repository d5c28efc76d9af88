import { invalidArgument, SandboxError } from "@turnbox/core";
import type { Process } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { CALL_MS } from "../deadline.ts";
import type { OpenSandbox } from "../resolve/resolve-sandbox.ts";
import { ambiguous } from "../../turnbox/sandbox-reference.ts";

export const PROCESS_RULE = "PROC is a process's id of `turnbox ps`, or a unique beginning of it.";

/** The processes of the sandbox's present generation, oldest first. */
export async function listProcesses(
  { host, sessionId }: OpenSandbox,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Process[]> {
  const { processes } = await host.processes.listProcesses({ sessionId }, { signal, timeoutMs: CALL_MS.read });
  return processes;
}

/** The one process that is meant: by its id, or by a unique beginning of it. */
export async function resolveProcess(
  sandbox: OpenSandbox,
  reference: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<Process> {
  if (reference === "") throw invalidArgument("process", "must not be empty");
  const processes = await listProcesses(sandbox, { signal });
  const exact = processes.find(({ processId }) => processId === reference);
  if (exact !== undefined) return exact;
  const matches = processes.filter(({ processId }) => processId.startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError("PROCESS_NOT_FOUND", `no process of ${sandbox.sandboxId} is called ${reference}`, {
      metadata: { reference, sandboxId: sandbox.sandboxId },
    });
  }
  if (others.length === 0) return first;
  throw ambiguous(
    "process",
    reference,
    matches.map(({ processId }) => processId),
  );
}
