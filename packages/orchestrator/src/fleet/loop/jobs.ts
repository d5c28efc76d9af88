import type { FencedHostCall } from "../../control/host-connection.ts";

/** Work on one instance that takes long. */
export interface Job {
  readonly instanceId: string;
  readonly work: (call: FencedHostCall) => Promise<void>;
}

/** Work on instances in the background: one piece at a time for each, a bounded number at all. */
export class Jobs {
  readonly #running = new Map<string, Promise<void>>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether work on the instance could begin now. */
  isFree(instanceId: string): boolean {
    return !this.#running.has(instanceId) && this.#running.size < this.#limit;
  }

  /** Begins the work unless the instance is busy or too much is under way. It must not reject. */
  start(instanceId: string, work: () => Promise<void>): void {
    if (!this.isFree(instanceId)) return;
    const running = work().finally(() => this.#running.delete(instanceId));
    this.#running.set(instanceId, running);
  }

  /** Returns when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }
}
