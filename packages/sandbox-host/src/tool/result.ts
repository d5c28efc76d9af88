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

/** What a tool call returns, and what the ledger keeps of it. */
export interface ToolResult {
  readonly content: string;
  /** The parts of the content; absent if it is one text. */
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
  /** The snapshot that holds what the call wrote, if one is taken for each call. */
  readonly snapshotId: string | null;
  /** Present if the host no longer keeps the content: what is left says how the call ended. */
  readonly contentDropped?: true;
}

/** The result of a call, and the head that it worked on. */
export interface LedgerEntry {
  readonly result: ToolResult;
  readonly headGeneration: number;
}

const DROPPED_NOTE = "[the output of this call is no longer kept]";

/** A result whose content is not kept. */
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
