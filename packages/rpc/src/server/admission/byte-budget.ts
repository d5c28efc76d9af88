/** How many bytes of requests may be in flight. */
export interface ByteLimits {
  readonly maxRequestBytes: number;
  readonly maxRequestBytesPerTenant: number;
  /** A caller is a sandbox's token, or all other tokens of a tenant together. */
  readonly maxRequestBytesPerCaller: number;
}

/** On whose account bytes are. */
export interface Account {
  readonly tenant: string;
  /** The one session that the caller's token is bound to. */
  readonly sandbox?: string | undefined;
}

/** What a call may hold beside all limits. The number of admitted calls bounds the sum. */
export const FREE_BYTES = 64 * 1024;

/** Counts the bytes of requests from when they arrive until their calls are over. */
export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #held = new Map<string, number>();
  #all = 0;
  #waiting: (() => void)[] = [];

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** All that is held now. */
  get heldBytes(): number {
    return this.#all;
  }

  /** An account of one call, which holds nothing at first. */
  open({ tenant, sandbox }: Account): Holding {
    const caller = `${tenant}/${sandbox ?? ""}`;
    let mine = 0;
    return {
      set: (bytes) => {
        const wanted = bytes <= FREE_BYTES ? 0 : bytes;
        const more = wanted - mine;
        if (more > 0 && !this.#fits({ tenant, caller }, more)) return "no room";
        mine = wanted;
        if (more !== 0) this.#move({ tenant, caller }, more);
        return "held";
      },
      room: () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#waiting.push(resolve);
        return promise;
      },
    };
  }

  #fits({ tenant, caller }: Names, more: number): boolean {
    const { maxRequestBytes, maxRequestBytesPerTenant, maxRequestBytesPerCaller } = this.#limits;
    return (
      this.#all + more <= maxRequestBytes &&
      (this.#held.get(tenant) ?? 0) + more <= maxRequestBytesPerTenant &&
      (this.#held.get(caller) ?? 0) + more <= maxRequestBytesPerCaller
    );
  }

  #move({ tenant, caller }: Names, more: number): void {
    this.#all += more;
    for (const name of [tenant, caller]) {
      const held = (this.#held.get(name) ?? 0) + more;
      if (held > 0) this.#held.set(name, held);
      else this.#held.delete(name);
    }
    if (more > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

interface Names {
  readonly tenant: string;
  /** Has a slash, which no tenant has. */
  readonly caller: string;
}

/** What one call holds. */
export interface Holding {
  /** Holds so many bytes in the place of what was held before; 0 gives all back. */
  set(bytes: number): "held" | "no room";
  /** Resolves when another call has given something back. */
  room(): Promise<void>;
}
