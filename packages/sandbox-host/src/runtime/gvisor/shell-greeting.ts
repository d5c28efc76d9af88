import type { Readable } from "node:stream";

/** Takes the greeting off the output, or tells that the output has ended before it, or the patience. */
export async function hearGreeting(
  output: Readable,
  greeting: string,
  patience: AbortSignal,
): Promise<"greeting" | "end" | "silence"> {
  for (;;) {
    const first = output.read(greeting.length) as Buffer | null;
    if (first?.toString("latin1") === greeting) return "greeting";
    if (output.readableEnded || output.destroyed) return "end";
    // Whatever says something else is not to be trusted with a second run.
    if (first !== null || patience.aborted) return "silence";
    await readable(output, patience);
  }
}

/** Settles when there may be something to read, or nothing will come. */
async function readable(output: Readable, patience: AbortSignal): Promise<void> {
  const events = ["readable", "end", "close"] as const;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      for (const event of events) output.off(event, settle);
      patience.removeEventListener("abort", settle);
      resolve();
    };
    for (const event of events) output.on(event, settle);
    patience.addEventListener("abort", settle, { once: true });
  });
}
