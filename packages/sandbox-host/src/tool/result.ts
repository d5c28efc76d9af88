/** How a tool ended. */
export type ExitReason = "exited" | "timed_out" | "killed" | "oom" | "sandbox_lost";

export interface OutputCount {
  readonly totalBytes: number;
  readonly truncatedBytes: number;
}

/** A part of a result. */
export type ContentBlock =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly mediaType: string; readonly base64: string };

/** What a tool call answers with, and what the ledger keeps of it. */
export interface ToolResult {
  readonly content: string;
  /** The parts of the content; absent where it is one text. */
  readonly blocks?: readonly ContentBlock[];
  /** Whether the tool did not do what was asked. */
  readonly isError: boolean;
  readonly exitCode: number | null;
  readonly exitReason: ExitReason;
  readonly stdout: OutputCount;
  readonly stderr: OutputCount;
  readonly durationMs: number;
  readonly tier: 1 | 2;
  readonly generation: number;
  /** The snapshot that holds what the call wrote, where one is taken for each call. */
  readonly snapshotId: string | null;
  /** Present if the host no longer keeps the content: what is left says how the call ended. */
  readonly contentDropped?: true;
}

/** What a call came to, and the head that it worked on. */
export interface LedgerEntry {
  readonly result: ToolResult;
  readonly headGeneration: number;
}

const DROPPED_NOTE = "[the output of this call is no longer kept]";

/** What is left of a result whose content is gone. */
export function withoutContent({ blocks: _, ...result }: ToolResult): ToolResult {
  const gone = ({ totalBytes }: OutputCount): OutputCount => ({ totalBytes, truncatedBytes: totalBytes });
  return {
    ...result,
    content: DROPPED_NOTE,
    contentDropped: true,
    stdout: gone(result.stdout),
    stderr: gone(result.stderr),
  };
}
