import type { ToolOutcome } from "./outcome.ts";

/** How a command ended; the exit code follows the shell's custom. */
export type CommandEnd =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "killed"; readonly signal: number }
  | { readonly kind: "timed_out" };

const TIMED_OUT = "[the command ran into its timeout and was killed]";

/** Standard output, then standard error, then what a reader has to know beyond them. */
export function toCommandOutcome(outputs: readonly string[], end: CommandEnd): ToolOutcome {
  const content = [...outputs, end.kind === "timed_out" ? TIMED_OUT : ""]
    .filter((text) => text !== "")
    .reduce((text, next) => (text === "" || text.endsWith("\n") ? text + next : `${text}\n${next}`), "");
  switch (end.kind) {
    case "exited":
      return { content, isError: end.exitCode !== 0, exitCode: end.exitCode, exitReason: "exited" };
    case "killed":
      return { content, isError: true, exitCode: 128 + end.signal, exitReason: "killed" };
    case "timed_out":
      return { content, isError: true, exitCode: 124, exitReason: "timed_out" };
  }
}
