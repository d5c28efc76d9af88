import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Reason } from "../error/reason.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandSpec } from "./command-runner.ts";

/** Why the system refused to start a program, by the error code it gave. Anything else is a missing program. */
const REASON_OF_CODE: ReadonlyMap<string, Reason> = new Map([
  ["ERR_INVALID_ARG_VALUE", "INVALID_ARGUMENT"],
  ["E2BIG", "INVALID_ARGUMENT"],
  ["EAGAIN", "OVERLOADED"],
  ["EMFILE", "OVERLOADED"],
  ["ENFILE", "OVERLOADED"],
  ["ENOMEM", "OVERLOADED"],
]);

/** Resolves when the program runs; throws why it does not. */
export async function spawned(child: ChildProcess, spec: CommandSpec): Promise<void> {
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw startFailure(spec, cause);
  }
}

export function startFailure(spec: CommandSpec, cause: unknown): SandboxError {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "";
  const reason = REASON_OF_CODE.get(code) ?? "COMMAND_MISSING";
  return new SandboxError(reason, `${spec.command} cannot be started`, { cause, metadata: { command: spec.command } });
}
