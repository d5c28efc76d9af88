import type { CommandRunner } from "@turnbox/core";
import { PERL, programPath } from "./program.ts";

const ENOSYS = 38;

const QUESTION_MS = 5000;

/** Whether programs that this process starts find membarrier(2) masked; `unknown` if nothing here can ask. */
export async function readMembarrier(
  runner: CommandRunner,
  { signal }: { readonly signal: AbortSignal },
): Promise<"masked" | "open" | "unknown"> {
  const spec = { command: PERL, args: [programPath("ask-membarrier.pl")], deadlineMs: QUESTION_MS };
  const answer = await runner.run(spec, { signal }).catch(() => undefined);
  if (answer?.exitCode !== 0) return "unknown";
  return Number(answer.stdout) === ENOSYS ? "masked" : "open";
}
