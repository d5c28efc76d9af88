import type { ProcessInfo, ProcessOutput, SandboxProcess } from "@turnbox/client";
import type { Invocation } from "../invocation.ts";
import { writeTo } from "../surroundings.ts";
import { forwardInput } from "./forward-input.ts";
import { openRawTerminal, terminalSize, untilDetachKey } from "./raw-terminal.ts";

export interface Attachment {
  readonly process: SandboxProcess;
  /** Where the output begins. */
  readonly from: number;
  readonly stdin: "forward" | "none";
  /** Where the output goes. */
  readonly onBytes: (bytes: Uint8Array) => Promise<void>;
  /** Told how many bytes are gone right before the next ones; a note on stderr unless given. */
  readonly onDropped?: (bytes: number) => Promise<void>;
}

/** The ended process, or `detached`: the user left, and it goes on. */
export type AttachmentEnd = ProcessInfo | "detached";

/** Is a process's input and output until it ends or the user leaves it. A terminal at both ends is passed on as one. */
export async function attachProcess(attachment: Attachment, invocation: Invocation): Promise<AttachmentEnd> {
  const { stdin, stdout } = invocation.surroundings;
  const { process } = attachment;
  if (!process.known.terminal || stdin.isTTY !== true || attachment.stdin === "none")
    return await connectStreams(attachment, { invocation, keys: "lines" });
  using _sizes = followSize(process, invocation);
  const terminal = await openRawTerminal(stdin, stdout);
  let end: "by itself" | "cut off" = "cut off";
  try {
    const shown = { ...attachment, onBytes: terminal.write };
    const result = await connectStreams(shown, { invocation, keys: "raw" });
    if (result !== "detached" && result.exitCode !== undefined) end = "by itself";
    return result;
  } finally {
    await terminal.restore(end);
  }
}

async function connectStreams(
  { process, from, stdin, onBytes, onDropped }: Attachment,
  { invocation, keys }: { readonly invocation: Invocation; readonly keys: "raw" | "lines" },
): Promise<AttachmentEnd> {
  const { surroundings } = invocation;
  const over = new AbortController();
  const signal = AbortSignal.any([invocation.signal, over.signal]);
  const onOutput = byParts({ onBytes, onDropped: onDropped ?? ((bytes) => noteDropped(bytes, invocation)) });
  const reading = process.read(onOutput, { from, signal });
  const typing =
    stdin === "none"
      ? undefined
      : forwardInput(
          process,
          {
            input: surroundings.stdin,
            atEnd: process.known.terminal ? "type Ctrl-D" : "close",
            ...(keys === "raw" ? { filter: untilDetachKey } : {}),
          },
          { signal },
        );
  try {
    const left = typing?.then(async (end) => (end === "stopped" ? ("detached" as const) : await reading));
    const ended = await Promise.race([reading, ...(left === undefined ? [] : [left])]);
    invocation.signal.throwIfAborted();
    return ended ?? "detached";
  } finally {
    over.abort();
    await Promise.allSettled([reading, typing]);
  }
}

/** Where output goes. */
export interface OutputParts {
  readonly onBytes: (bytes: Uint8Array) => Promise<void>;
  /** Told how many bytes are gone right before the next ones. */
  readonly onDropped: (bytes: number) => Promise<void>;
}

export const byParts =
  ({ onBytes, onDropped }: OutputParts) =>
  async ({ data, droppedBytes }: ProcessOutput): Promise<void> => {
    if (droppedBytes > 0) await onDropped(droppedBytes);
    if (data.length > 0) await onBytes(data);
  };

/** Says on stderr that output is missing. */
export async function noteDropped(bytes: number, { surroundings }: Pick<Invocation, "surroundings">): Promise<void> {
  await writeTo(surroundings.stderr, `turnbox: ${String(bytes)} bytes of older output are gone\n`);
}

/** Gives the process's terminal the size of ours, now and whenever that changes. */
function followSize(process: SandboxProcess, { surroundings, signal }: Invocation): Disposable {
  const { stdout } = surroundings;
  const resize = (): void => {
    // A size that does not arrive is no reason to end; a process that has ended has none.
    process.resize(terminalSize(stdout), { signal }).catch(() => undefined);
  };
  resize();
  stdout.on?.("resize", resize);
  return {
    [Symbol.dispose]: () => {
      stdout.off?.("resize", resize);
    },
  };
}
