import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Reason } from "../error/reason.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandSpec } from "./command-runner.ts";

const REASON_OF_CODE: ReadonlyMap<string, Reason> = new Map([
  ["ERR_INVALID_ARG_VALUE", "INVALID_ARGUMENT"],
  ["E2BIG", "INVALID_ARGUMENT"],
  ["EAGAIN", "OVERLOADED"],
  ["EMFILE", "OVERLOADED"],
  ["ENFILE", "OVERLOADED"],
  ["ENOMEM", "OVERLOADED"],
  ["ETXTBSY", "OVERLOADED"],
]);

/** Resolves when the program runs; throws why it does not. */
export async function spawned(child: ChildProcess, spec: Pick<CommandSpec, "command">): Promise<void> {
  try {
    await once(child, "spawn");
  } catch (cause) {
    throw startFailure(spec, cause);
  }
}

const BUSY_TRIES = 40;
const BUSY_PAUSE_MS = 5;

/**
 * Starts a program, again after a moment where its file is "busy": for as long as any child of this process that was
 * forked while the file was being written has not become another program, the system refuses to run the file.
 */
export async function onceNotBusy<Started>(start: () => Promise<Started>): Promise<Started> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start();
    } catch (thrown) {
      const cause = thrown instanceof SandboxError ? thrown.cause : undefined;
      if (codeOf(cause) !== "ETXTBSY" || tries === BUSY_TRIES) throw thrown;
      await delay(BUSY_PAUSE_MS);
    }
  }
}

/** Where the code says nothing else, the program is missing. */
export function startFailure({ command }: Pick<CommandSpec, "command">, cause: unknown): SandboxError {
  const reason = reasonOfStart(cause) ?? "COMMAND_MISSING";
  return new SandboxError(reason, `${command} cannot be started`, { cause, metadata: { command } });
}

/** Why the system refused what a program needs, by the code of its error; undefined if the code says nothing of it. */
export const reasonOfStart = (cause: unknown): Reason | undefined => REASON_OF_CODE.get(codeOf(cause));

function codeOf(cause: unknown): string {
  return typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : "";
}
