import { CommandFailure } from "./command.mjs";

const SHOWN_LINES = 25;

/** A bootstrap step that failed, with everything a person needs to act. */
export class StepFailure extends Error {
  constructor({ step, cause, remedy }) {
    super(`step "${step}" failed`, { cause });
    this.name = "StepFailure";
    this.step = step;
    this.remedy = remedy;
  }
}

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** Turns a failure into the text that is shown: step, command, exit code, last lines of output, remedy. */
export function describeFailure(failure) {
  const { cause } = failure;
  const lines = [`bootstrap: ${failure.message}`];
  if (cause instanceof CommandFailure) {
    lines.push(`  command:   ${cause.argv.join(" ")}`, `  exit code: ${cause.code ?? "none (ended by a signal)"}`);
    const tail = cause.tail.trimEnd().split("\n").slice(-SHOWN_LINES);
    if (tail.some((line) => line !== "")) lines.push("  last lines:", ...tail.map((line) => `    ${line}`));
  } else {
    lines.push(`  reason:    ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  return [...lines, `  remedy:    ${failure.remedy}`].join("\n");
}

/**
 * Runs one step unless its stamp says that nothing has changed, and prints one line with its duration. The stamp is
 * removed before the work begins, so an interrupted step runs again.
 */
export async function runStep({ name, stamp, work, remedy, print }) {
  const startedMs = performance.now();
  try {
    if (stamp?.isFresh()) {
      print(`  ${name}: unchanged`);
      return;
    }
    stamp?.clear();
    print(`  ${name} ...`);
    await work();
    stamp?.write();
  } catch (cause) {
    throw new StepFailure({ step: name, cause, remedy });
  }
  print(`  ${name}: done in ${seconds(performance.now() - startedMs)}`);
}
