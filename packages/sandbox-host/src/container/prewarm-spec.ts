import { WORKING_DIRECTORY } from "../file/path.ts";
import type { ExecSpec } from "../runtime/runtime.ts";
import { environmentOf } from "../session/environment.ts";

/** What is likely to be run first in a container that was just booted: a command of the shell, in this environment. */
export function firstCall(env: Readonly<Record<string, string>>, toolTimeoutMs: number): ExecSpec {
  return { argv: ["bash", "-c", ""], env: environmentOf(env), cwd: WORKING_DIRECTORY, deadlineMs: toolTimeoutMs };
}
