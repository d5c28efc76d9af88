import type { Storage } from "../storage.ts";

/** The operations of the port. */
export type StorageOperation = {
  [K in keyof Storage]: Storage[K] extends (...args: never[]) => Promise<unknown> ? K : never;
}[keyof Storage];

export interface Fault {
  readonly error: Error;
  /** `after`: the effect takes place and only the result is lost, as when a command is cut off. Default `before`. */
  readonly when?: "before" | "after";
}

/** An operation that is kept from going on. */
export interface Hold {
  /** Settles when a caller has arrived. */
  readonly entered: Promise<void>;
  release(): void;
}

/** What tests do to a fake storage. */
export interface FakeFaults {
  /** The next call of the operation fails so; faults of one operation queue up. */
  failNext(operation: StorageOperation, fault: Fault): void;
  /** The next call of the operation waits, before its effect, until it is released. */
  holdNext(operation: StorageOperation): Hold;
}

export interface FaultInjection extends FakeFaults {
  around<T>(operation: StorageOperation, work: () => Promise<T>): Promise<T>;
}

export function createFaultInjection(): FaultInjection {
  const faults = new Map<StorageOperation, Fault[]>();
  const holds = new Map<StorageOperation, { readonly enter: () => void; readonly released: Promise<void> }[]>();
  return {
    failNext: (operation, fault) => {
      faults.set(operation, [...(faults.get(operation) ?? []), fault]);
    },
    holdNext: (operation) => {
      const entered = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      holds.set(operation, [...(holds.get(operation) ?? []), { enter: entered.resolve, released: released.promise }]);
      return { entered: entered.promise, release: released.resolve };
    },
    around: async (operation, work) => {
      const hold = holds.get(operation)?.shift();
      hold?.enter();
      await hold?.released;
      const fault = faults.get(operation)?.shift();
      if (fault !== undefined && fault.when !== "after") throw fault.error;
      const answer = await work();
      if (fault !== undefined) throw fault.error;
      return answer;
    },
  };
}
