import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Reason } from "../error/reason.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandSpec } from "./command-runner.ts";

/** Why the system refused to give what a program needs, by the error code it gave. */
const REASON_OF_CODE: ReadonlyMap<string, Reason> = new Map([
  ["ERR_INVALID_ARG_VALUE", "INVALID_ARGUMENT"],
  ["E2BIG", "INVALID_ARGUMENT"],
  ["EAGAIN", "OVERLOADED"],
  ["EMFILE", "OVERLOADED"],
  ["ENFILE", "OVERLOADED"],
  ["ENOMEM", "OVERLOADED"],
]);

/** Resolves when the program runs; throws why it does not. */
export async function spawned(child: ChildProcess, spec: Pick<CommandSpec, "command">): Promise<void> {
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw startFailure(spec, cause);
  }
}

/** Where the code says nothing else, the program is missing. */
export function startFailure({ command }: Pick<CommandSpec, "command">, cause: unknown): SandboxError {
  const reason = reasonOf(cause) ?? "COMMAND_MISSING";
  return new SandboxError(reason, `${command} cannot be started`, { cause, metadata: { command } });
}

/** Why a pipe for a program could not be made. */
export function pipeFailure(cause: unknown): SandboxError {
  return new SandboxError(reasonOf(cause) ?? "INTERNAL", "a pipe for a program cannot be made", { cause });
}

function reasonOf(cause: unknown): Reason | undefined {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "";
  return REASON_OF_CODE.get(code);
}
