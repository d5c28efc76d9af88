import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { ToolResult } from "@turnbox/client";

type Content = CallToolResult["content"][number];

export const text = (value: string): Content => ({ type: "text", text: value });

/**
 * The result of a tool of the catalog. Its facts go into `_meta`: several hosts show a model nothing but
 * `structuredContent` if there is one, and the output would be lost to it.
 */
export function fromToolResult(result: ToolResult, sandboxId: string): CallToolResult {
  const { toolCallId, isError, exitCode, exitReason, snapshotId, durationMs, generation, replayed } = result;
  return {
    isError,
    content: [...contentOf(result), ...noteOn(result)],
    _meta: {
      "turnbox/call": {
        sandboxId,
        toolCallId,
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(exitReason === undefined ? {} : { exitReason }),
        ...(snapshotId === undefined ? {} : { snapshotId }),
        durationMs,
        generation,
        replayed,
      },
    },
  };
}

function contentOf({ content, blocks }: ToolResult): readonly Content[] {
  const parts = blocks.flatMap((block): readonly Content[] => {
    if (block.type === "text") return block.text === "" ? [] : [text(block.text)];
    return [{ type: "image", data: Buffer.from(block.data).toString("base64"), mimeType: block.mediaType }];
  });
  if (parts.length > 0) return parts;
  return [text(content === "" ? "[no output]" : content)];
}

/** The output of a command does not say how it ended. */
function noteOn({ exitCode, exitReason }: ToolResult): readonly Content[] {
  return exitCode === undefined || exitCode === 0 || exitReason !== "exited"
    ? []
    : [text(`[exit code ${String(exitCode)}]`)];
}
