import { SandboxError } from "@turnbox/core";
import type { Process } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import type { SandboxLink } from "../resolve/sandbox-link.ts";

export interface OutputQuestion {
  readonly processId: string;
  readonly offset: bigint;
  /** `follow`: until the process has ended. */
  readonly until: "now" | "follow";
  /** Given every byte once, in order; the next ones wait for it. */
  readonly onBytes: (bytes: Uint8Array) => Promise<void>;
  /** Told how many bytes are gone right before the next ones. */
  readonly onDropped: (bytes: bigint) => Promise<void>;
}

export interface OutputEnd {
  /** Where to go on. */
  readonly offset: bigint;
  /** Absent while the process runs. */
  readonly exited?: Process;
}

/** Reads a process's output from an offset on. A stream that breaks goes on where it was. */
export async function readOutput(
  link: SandboxLink,
  question: OutputQuestion,
  { signal }: { readonly signal: AbortSignal },
): Promise<OutputEnd> {
  const { processId, until, onBytes, onDropped } = question;
  let { offset } = question;
  return await link.use(async ({ host, sessionId }, progress) => {
    const pieces = host.processes.readOutput({ sessionId, processId, offset, follow: until === "follow" }, { signal });
    for await (const piece of pieces) {
      progress();
      if (piece.droppedBytes > 0n) await onDropped(piece.droppedBytes);
      if (piece.data.length > 0) await onBytes(piece.data);
      offset = piece.offset + BigInt(piece.data.length);
      if (piece.exited !== undefined) return { offset, exited: piece.exited };
    }
    signal.throwIfAborted();
    if (until === "now") return { offset };
    throw new SandboxError("HOST_UNREACHABLE", "the output ended before the process", { metadata: { processId } });
  });
}
