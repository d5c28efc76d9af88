interface Calls {
  /** Calls that have begun since the boot. */
  begun: number;
  running: number;
}

/**
 * All processes of a container that are started from outside have one set of limits: one that lowers its own lowers those of
 * the shells that wait, too, and each start from outside sets them again. This knows of a shell that waits whether its
 * limits can have been lowered since its start, so that they are restored only then. What is started inside by a process has a
 * set of its own, and does not count.
 */
export class SharedLimits {
  /** Containers that were booted by this service and in which calls alone have been started from outside. */
  readonly #containers = new Map<string, Calls>();

  noteBoot(id: string): void {
    this.#containers.set(id, { begun: 0, running: 0 });
  }

  /** Another process than a call is started from outside: from now on nothing is known of the container's limits. */
  noteOther(id: string): void {
    this.#containers.delete(id);
  }

  /** Counts a call, until what is returned is called. */
  beginCall(id: string): () => void {
    const calls = this.#containers.get(id);
    if (calls === undefined) return () => undefined;
    calls.begun += 1;
    calls.running += 1;
    return () => {
      calls.running -= 1;
    };
  }

  /** What `isIntact` needs of a shell that is started now; undefined if its limits may be lowered at any time. */
  mark(id: string): number | undefined {
    const calls = this.#containers.get(id);
    return calls?.running === 0 ? calls.begun : undefined;
  }

  /** Whether a shell of this mark has the limits of a new one, asked by the call that has begun last. */
  isIntact(id: string, mark: number | undefined): boolean {
    const calls = this.#containers.get(id);
    return calls !== undefined && mark !== undefined && calls.begun === mark + 1;
  }
}
