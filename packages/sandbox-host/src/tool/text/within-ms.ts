import { getPriority, setPriority } from "node:os";
import { runInNewContext } from "node:vm";

/** What may have to be ended is not to hold up what is not. */
const LOW_PRIORITY = 10;

/** Work was ended because it took too long. */
export class TookTooLong extends Error {
  override readonly name = "TookTooLong";
}

/**
 * Does synchronous work and ends it after so long, also in the middle of a match of a regular expression, which nothing else
 * ends but the end of the process. What the work holds is not given back then: no `finally` of it runs. Costs a thread. The
 * process goes behind others meanwhile.
 */
export function withinMs<Result>(ms: number, work: () => Result): Result {
  const priority = getPriority();
  try {
    setPriority(Math.max(priority, LOW_PRIORITY));
    return runInNewContext("work()", { work }, { timeout: ms }) as Result;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ERR_SCRIPT_EXECUTION_TIMEOUT")
      throw new TookTooLong(`longer than ${ms} ms`);
    throw thrown;
  } finally {
    setPriority(priority);
  }
}
