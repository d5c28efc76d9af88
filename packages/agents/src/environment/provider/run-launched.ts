import { constants } from "node:os";
import { type Clock, SandboxError } from "@turnbox/client";
import { createDeadline } from "@turnbox/client/internal";
import type { Handle, LaunchExit } from "../../provider/launch/launcher.ts";
import type { CommandEnd } from "../tool/command-outcome.ts";
import { KEEP_BYTES } from "../tool/tool-schemas.ts";
import type { ToolCall } from "../tool/tool-set.ts";

export interface Launched {
  readonly stdout: string;
  /** The last of it. */
  readonly stderr: string;
  readonly end: CommandEnd;
}

/**
 * Reads a launched program to its end, and stops it at its time, with its caller, or if its listener fails. Standard
 * output is reported as it comes; of standard error a launcher has the end alone, which is reported last.
 */
export async function runLaunched(
  handle: Handle,
  {
    clock,
    timeoutMs,
    signal,
    onProgress,
  }: Omit<ToolCall, "timeoutMs"> & { readonly clock: Clock; readonly timeoutMs: number },
): Promise<Launched> {
  using deadline = createDeadline({ clock, ms: timeoutMs, signal });
  // Not waited for: a program that ends first leaves it open for ever.
  handle.stdin.close().catch(() => undefined);
  try {
    const stopping = stopWith(handle, deadline.signal);
    const stdout = await readAll(handle, (data, offset) =>
      onProgress({ stream: "stdout", data, offset, droppedBytes: 0 }),
    );
    const exit = await handle.wait();
    await stopping.settled();
    signal.throwIfAborted();
    const stderr = await handle.stderr();
    if (stderr !== "") onProgress({ stream: "stderr", data: Buffer.from(stderr), offset: 0, droppedBytes: 0 });
    return { stdout, stderr, end: deadline.signal.aborted ? { kind: "timed_out" } : endOf(exit) };
  } finally {
    await handle.stop();
  }
}

/** Stops the program when the signal comes; `settled` takes the listener back and waits for a stop under way. */
function stopWith(handle: Handle, signal: AbortSignal): { settled(): Promise<void> } {
  let stopping: Promise<void> | undefined;
  const stop = (): void => {
    stopping = handle.stop();
    stopping.catch(() => undefined);
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  return {
    settled: async () => {
      signal.removeEventListener("abort", stop);
      await stopping;
    },
  };
}

async function readAll(handle: Handle, tell: (data: Uint8Array, offset: number) => void): Promise<string> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let offset = 0;
  for await (const data of handle.stdout) {
    tell(data, offset);
    offset += data.length;
    const part = data.subarray(0, KEEP_BYTES - keptBytes);
    kept.push(part);
    keptBytes += part.length;
  }
  const text = Buffer.concat(kept).toString();
  return offset === keptBytes ? text : `${text}\n[${String(offset - keptBytes)} more bytes of stdout are not shown]`;
}

function endOf({ exitCode, signal, reason }: LaunchExit): CommandEnd {
  if (exitCode !== undefined) return { kind: "exited", exitCode };
  const name = Object.entries(constants.signals).find(([known]) => known === signal);
  if (name !== undefined) return { kind: "killed", signal: name[1] };
  throw new SandboxError("SANDBOX_LOST", `the command ended with its sandbox (${reason ?? "for no reason known"})`);
}
