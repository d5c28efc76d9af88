import type { ProcessInfo } from "@turnbox/client";
import type { Output } from "../output.ts";
import { processExitCode, toProcessView } from "./process-view.ts";

/** A process's output as it comes, an object on each line, for `--json`. */
export interface OutputLines {
  bytes(bytes: Uint8Array): Promise<void>;
  /** Output that the journal no longer has. */
  dropped(bytes: number): Promise<void>;
  /** The last line. `detached`: the process goes on without us. */
  end(process: ProcessInfo | "detached"): Promise<void>;
}

/**
 * Lines are `{event: "output", offset, text}`, `{event: "dropped", offset, bytes}` and at last `{event: "ended", process,
 * exitCode, nextOffset}` or `{event: "detached", nextOffset}`. Text is UTF-8, and no character is torn in two.
 */
export function createOutputLines(
  output: Pick<Output, "result">,
  { sandboxId, offset: from }: { readonly sandboxId: string; readonly offset: number },
): OutputLines {
  const decoder = new TextDecoder();
  let nextOffset = from;
  const print = (line: object): Promise<void> => output.result({ json: line, text: "" });
  return {
    bytes: async (bytes) => {
      const offset = nextOffset;
      nextOffset += bytes.length;
      const text = decoder.decode(bytes, { stream: true });
      if (text !== "") await print({ event: "output", offset, text });
    },
    dropped: async (bytes) => {
      await print({ event: "dropped", offset: nextOffset, bytes });
      nextOffset += bytes;
    },
    end: async (process) => {
      const rest = decoder.decode();
      if (rest !== "") await print({ event: "output", offset: nextOffset, text: rest });
      if (process === "detached") await print({ event: "detached", sandboxId, nextOffset });
      else
        await print({
          event: "ended",
          sandboxId,
          process: toProcessView(process),
          exitCode: processExitCode(process),
          nextOffset,
        });
    },
  };
}
