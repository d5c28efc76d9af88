import type { ContentBlock } from "../result.ts";

/** What a file tool returns. */
export interface TextOutcome {
  readonly content: string;
  readonly isError: boolean;
  /** Present if the result is more than its text. */
  readonly blocks?: readonly ContentBlock[];
}

export function done(content: string): TextOutcome {
  return { content, isError: false };
}

/** The tool did not do what was asked; the text says why and what to do. */
export function refused(content: string): TextOutcome {
  return { content, isError: true };
}

/** `1 line`, `2 lines`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

export function bytesOf(count: number): string {
  return counted(count, "byte");
}
