import { readFileSync } from "node:fs";

/** The shells that there is a script for, `shell/turnbox.<shell>` of this package. */
export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof COMPLETION_SHELLS)[number];

/** Where the verbs belong in a script. */
const VERBS = "@VERBS@";

/**
 * A script that completes the words of `turnbox`, given the verbs, which it knows without asking. This file lies directly
 * below `src`, since the command line in one file finds the scripts as far from itself as this file does.
 */
export function completionScript(shell: Shell, verbs: readonly string[]): string {
  const script = readFileSync(new URL(`../shell/turnbox.${shell}`, import.meta.url), "utf8");
  return script.replaceAll(VERBS, () => verbs.join(" "));
}
