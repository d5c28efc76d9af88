import type { FleetChange } from "../fleet-view.ts";

/** Hands changes to any number of readers. What a slow reader holds back is bounded: beyond that it learns of a loss. */
export class ChangeFeed {
  readonly #readers = new Set<(change: FleetChange) => void>();
  readonly #capacity: number;

  constructor(capacity = 1024) {
    this.#capacity = capacity;
  }

  publish(change: FleetChange): void {
    for (const reader of this.#readers) reader(change);
  }

  /** Calls the listener at each change, until it is disposed of. It must not throw. */
  listen(listener: (change: FleetChange) => void): Disposable {
    const reader = (change: FleetChange): void => {
      listener(change);
    };
    this.#readers.add(reader);
    return { [Symbol.dispose]: () => void this.#readers.delete(reader) };
  }

  /** Each change from the moment of the call on, until the signal. */
  changes({ signal }: { readonly signal: AbortSignal }): AsyncIterable<FleetChange> {
    const held: FleetChange[] = [];
    let wake = (): void => undefined;
    const listening = this.listen((change) => {
      if (held.length < this.#capacity) held.push(change);
      else held.splice(0, held.length, { kind: "overflow" });
      wake();
    });
    const onAbort = (): void => {
      listening[Symbol.dispose]();
      wake();
    };
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const isOver = (): boolean => signal.aborted;
    async function* read(): AsyncGenerator<FleetChange, void> {
      try {
        while (!isOver()) {
          const next = held.shift();
          if (next !== undefined) yield next;
          else await new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        signal.removeEventListener("abort", onAbort);
        onAbort();
      }
    }
    return read();
  }
}
