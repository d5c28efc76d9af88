import type { ExecSpec } from "../runtime/runtime.ts";
import { environmentOf, WORKING_DIRECTORY } from "../session/environment.ts";

/** What is likely to be run first in a container that was just booted: a command of the shell, in this environment. */
export function prewarmSpec(env: Readonly<Record<string, string>>, toolTimeoutMs: number): ExecSpec {
  return { argv: ["bash", "-c", ""], env: environmentOf(env), cwd: WORKING_DIRECTORY, deadlineMs: toolTimeoutMs };
}
