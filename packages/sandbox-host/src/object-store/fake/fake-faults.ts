import { raceSignal } from "@turnbox/core";

export type ObjectOperation = "put" | "putStream" | "get" | "stat" | "list" | "delete" | "check";

export interface ObjectFault {
  readonly error: Error;
  /** `after`: the effect takes place and only the answer is lost. Default `before`. */
  readonly when?: "before" | "after";
}

/** What goes wrong with the body of one `get`, after `bytes` of it: it ends there, or a byte is another one. */
export interface BodyFault {
  readonly kind: "cut" | "wrong_byte";
  readonly bytes: number;
}

/** An operation that is kept from going on. */
export interface Hold {
  /** Settles when a caller has arrived. */
  readonly entered: Promise<void>;
  release(): void;
}

interface Waiting {
  readonly enter: () => void;
  readonly released: Promise<void>;
}

/** What tests do to a fake object store. Faults of one operation queue up, one for each call. */
export class FakeObjectFaults {
  /** More bytes than this do not fit. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** Whether conditions of puts are looked at. */
  conditions: "kept" | "ignored" = "kept";
  readonly #faults = new Map<ObjectOperation, ObjectFault[]>();
  readonly #holds = new Map<ObjectOperation, Waiting[]>();
  readonly #bodies: BodyFault[] = [];

  /** The next call of the operation fails so. */
  failNext(operation: ObjectOperation, ...faults: readonly ObjectFault[]): void {
    this.#faults.set(operation, [...(this.#faults.get(operation) ?? []), ...faults]);
  }

  /** The next call of the operation waits, before its effect, until it is released or its signal aborts. */
  holdNext(operation: ObjectOperation): Hold {
    const entered = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const waiting = { enter: entered.resolve, released: released.promise };
    this.#holds.set(operation, [...(this.#holds.get(operation) ?? []), waiting]);
    return { entered: entered.promise, release: released.resolve };
  }

  /** The next `get` that succeeds gives a body with this fault. */
  spoilNext(fault: BodyFault): void {
    this.#bodies.push(fault);
  }

  takeBodyFault(): BodyFault | undefined {
    return this.#bodies.shift();
  }

  /** Does the work of one call, with what was ordered for it. */
  async around<T>(operation: ObjectOperation, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const hold = this.#holds.get(operation)?.shift();
    hold?.enter();
    if (hold !== undefined) await raceSignal(hold.released, signal);
    const fault = this.#faults.get(operation)?.shift();
    if (fault !== undefined && fault.when !== "after") throw fault.error;
    const answer = await work();
    if (fault !== undefined) throw fault.error;
    return answer;
  }
}
