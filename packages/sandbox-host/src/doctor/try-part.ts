import { ask } from "./ask.ts";
import type { Finding, ProbeDeps } from "./finding.ts";
import { ROOT_REMEDY } from "./machine.ts";
import type { SystemPart } from "./system-parts.ts";

/** A daemon that takes longer than this for a short answer hangs. */
const TRIAL_MS = 5000;

export interface Candidate {
  readonly found: Finding;
  /** Which of the two does the part's work here. */
  readonly by: "package" | "alternative";
}

/**
 * Whether a part that is there also works. Nothing is started for the sake of it: a daemon that does not run, and that
 * the host starts when it needs it, is as it should be.
 */
export async function tryPart(
  { trial, insteadOf }: SystemPart,
  { found, by }: Candidate,
  deps: ProbeDeps,
): Promise<Finding> {
  if (trial === undefined) return found;
  const what = trial.argv.join(" ");
  const broken = (detail: string): Finding => {
    const ofPart = by === "alternative" ? (insteadOf?.trialRemedy ?? trial.remedy) : trial.remedy;
    return { ...found, status: "broken", detail, remedy: deps.machine.user === "root" ? ofPart : ROOT_REMEDY };
  };
  const answer = await ask({ argv: trial.argv, deadlineMs: TRIAL_MS }, deps);
  if (answer.kind === "silent") return broken(`${what} did not answer within ${TRIAL_MS / 1000} s`);
  if (answer.kind === "unrunnable") return broken(`${what} cannot be run`);
  if (answer.exitCode === 0) return found;
  if (by === "package" && new RegExp(trial.startable).test(answer.stderr)) {
    return { ...found, detail: "not running; the host starts it" };
  }
  return broken(`${what} failed: ${answer.stderr.split("\n")[0] ?? ""}`);
}
