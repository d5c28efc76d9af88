import { type Clock, invalidArgument, SandboxError } from "@turnbox/core";
import type { TerminalExecution } from "../runtime/runtime.ts";

/** How long a call waits for room in a full terminal. */
const PATIENCE_MS = 1000;
const PIECE_BYTES = 64 * 1024;

/**
 * What is typed on a terminal, at offsets: see `ProcessInput`. Accepted is what the terminal has taken; nothing else of a request
 * is kept. The count lives as long as the service.
 */
export class TerminalInput {
  readonly #terminal: TerminalExecution;
  readonly #clock: Clock;
  #acceptedBytes = 0;
  #state: "open" | "ended" = "open";
  #lastPiece: Promise<unknown> = Promise.resolve();

  constructor(terminal: TerminalExecution, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
  }

  get acceptedBytes(): number {
    return this.#acceptedBytes;
  }

  async write(offset: number, data: Uint8Array, { signal }: { readonly signal: AbortSignal }): Promise<number> {
    if (offset > this.#acceptedBytes)
      throw invalidArgument("offset", `must be at most ${this.#acceptedBytes}, what was accepted`);
    const end = offset + data.length;
    if (end > this.#acceptedBytes && this.#state === "ended")
      throw new SandboxError("INVALID_STATE", "the process reads no input any more");
    const untilMs = this.#clock.monotonicMs() + PATIENCE_MS;
    const leftMs = (): number => untilMs - this.#clock.monotonicMs();
    while (this.#acceptedBytes < end && this.#state === "open" && leftMs() > 0 && !signal.aborted) {
      const piece = this.#lastPiece.then(async () => {
        // Another request may have brought the same bytes meanwhile.
        const fresh = data.subarray(this.#acceptedBytes - offset);
        if (fresh.length === 0 || leftMs() <= 0) return;
        this.#acceptedBytes += await this.#terminal.write(fresh.subarray(0, PIECE_BYTES), leftMs());
      });
      this.#lastPiece = piece.catch(() => undefined);
      await piece;
    }
    return this.#acceptedBytes;
  }

  /** From now on nothing new is taken. */
  end(): void {
    this.#state = "ended";
  }
}
