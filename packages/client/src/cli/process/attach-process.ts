import type { Process } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import type { SandboxLink } from "../resolve/sandbox-link.ts";
import { writeTo } from "../surroundings.ts";
import { forwardInput } from "./forward-input.ts";
import { openRawTerminal, terminalSize, untilDetachKey } from "./raw-terminal.ts";
import { readOutput } from "./read-output.ts";

export interface Attachment {
  readonly process: Process;
  /** Where the output begins. */
  readonly from: bigint;
  readonly stdin: "forward" | "none";
  /** Where the output goes. */
  readonly onBytes: (bytes: Uint8Array) => Promise<void>;
  /** Told how many bytes are gone right before the next ones; a note on stderr unless given. */
  readonly onDropped?: (bytes: bigint) => Promise<void>;
}

/** The ended process, or `detached`: the user left, and it goes on. */
export type AttachmentEnd = Process | "detached";

/** Is a process's input and output until it ends or the user leaves it. A terminal at both ends is passed on as one. */
export async function attachProcess(
  link: SandboxLink,
  attachment: Attachment,
  invocation: Invocation,
): Promise<AttachmentEnd> {
  const { stdin, stdout } = invocation.surroundings;
  const { process } = attachment;
  if (!process.terminal || stdin.isTTY !== true || attachment.stdin === "none")
    return await connectStreams(link, attachment, { invocation, keys: "lines" });
  using _sizes = followSize(link, process.processId, invocation);
  const terminal = await openRawTerminal(stdin, stdout);
  let end: "by itself" | "cut off" = "cut off";
  try {
    const shown = { ...attachment, onBytes: terminal.write };
    const result = await connectStreams(link, shown, { invocation, keys: "raw" });
    if (result !== "detached" && result.exitCode !== undefined) end = "by itself";
    return result;
  } finally {
    await terminal.restore(end);
  }
}

async function connectStreams(
  link: SandboxLink,
  { process, from, stdin, onBytes, onDropped }: Attachment,
  { invocation, keys }: { readonly invocation: Invocation; readonly keys: "raw" | "lines" },
): Promise<AttachmentEnd> {
  const { surroundings } = invocation;
  const { processId } = process;
  const over = new AbortController();
  const signal = AbortSignal.any([invocation.signal, over.signal]);
  const reading = readOutput(
    link,
    {
      processId,
      offset: from,
      until: "follow",
      onBytes,
      onDropped: onDropped ?? ((bytes) => noteDropped(bytes, invocation)),
    },
    { signal },
  );
  const typing =
    stdin === "none"
      ? undefined
      : forwardInput(
          link,
          {
            processId,
            offset: process.inputBytes,
            input: surroundings.stdin,
            atEnd: process.terminal ? "type Ctrl-D" : "close",
            ...(keys === "raw" ? { filter: untilDetachKey } : {}),
          },
          { signal },
        );
  try {
    const left = typing?.then(async (end) => (end === "stopped" ? ("detached" as const) : (await reading).exited));
    const ended = await Promise.race([reading.then(({ exited }) => exited), ...(left === undefined ? [] : [left])]);
    invocation.signal.throwIfAborted();
    return ended ?? "detached";
  } finally {
    over.abort();
    await Promise.allSettled([reading, typing]);
  }
}

/** Says on stderr that output is missing. */
export async function noteDropped(bytes: bigint, { surroundings }: Pick<Invocation, "surroundings">): Promise<void> {
  await writeTo(surroundings.stderr, `turnbox: ${String(bytes)} bytes of older output are gone\n`);
}

/** Gives the process's terminal the size of ours, now and whenever that changes. */
function followSize(link: SandboxLink, processId: string, { surroundings, signal }: Invocation): Disposable {
  const { stdout } = surroundings;
  const resize = (): void => {
    const size = terminalSize(stdout);
    // A size that does not arrive is no reason to end; a process that has ended has none.
    void link
      .use(({ host, sessionId }) =>
        host.processes.resizeTerminal({ sessionId, processId, size }, { signal, timeoutMs: CALL_MS.read }),
      )
      .catch(() => undefined);
  };
  resize();
  stdout.on?.("resize", resize);
  return {
    [Symbol.dispose]: () => {
      stdout.off?.("resize", resize);
    },
  };
}
