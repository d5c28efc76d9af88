import type { ExitReason } from "@turnbox/client";

/** What a tool returns. */
export interface ToolOutcome {
  readonly content: string;
  readonly isError: boolean;
  readonly exitCode?: number;
  readonly exitReason?: ExitReason;
}

export const done = (content: string): ToolOutcome => ({ content, isError: false });

/** The tool did not do what was asked; the text says why. */
export const refused = (content: string): ToolOutcome => ({ content, isError: true });

/** `1 line`, `2 lines`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${String(count)} ${count === 1 ? noun : plural}`;

/** Lines, and how many of all there are do not show. */
export function listed(lines: readonly string[], total: number, nouns: readonly [one: string, many: string]): string {
  const left = total - lines.length;
  const rest = counted(left, `more ${nouns[0]}`, `more ${nouns[1]}`);
  return left === 0 ? lines.join("\n") : `${lines.join("\n")}\n[${rest} not shown]`;
}
