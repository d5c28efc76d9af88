/** What one sandbox takes of an instance. */
export interface Demand {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** What is promised on an instance beyond its last report. */
export interface Promised extends Demand {
  readonly sessions: number;
}

/** A place on an instance. Disposal gives it back unless it was kept. */
export interface SlotClaim extends Disposable {
  readonly instanceId: string;
  /** The sandbox is there: the place stays taken until a report that was asked for later includes it. */
  keep(): void;
}

interface Claim {
  readonly demand: Demand;
  /** Undefined while the create is in flight. */
  keptAtMs: number | undefined;
}

const NOTHING: Promised = { sessions: 0, cpus: 0, memoryBytes: 0, diskBytes: 0 };

/**
 * The places that creates have taken and that no report of a host includes yet. A claim comes before the call to the
 * host, so that two creates never count on the same place; a report never overwrites a claim that it cannot have seen.
 */
export class Slots {
  readonly #claims = new Map<string, Set<Claim>>();
  readonly #monotonicMs: () => number;
  #onChange: (instanceId: string) => void = () => undefined;

  constructor(clock: { monotonicMs(): number }) {
    this.#monotonicMs = () => clock.monotonicMs();
  }

  /** Says from now on where what is promised has changed, to one listener. */
  listen(onChange: (instanceId: string) => void): void {
    this.#onChange = onChange;
  }

  claim(instanceId: string, demand: Demand): SlotClaim {
    const claim: Claim = { demand, keptAtMs: undefined };
    const claims = this.#claims.get(instanceId) ?? new Set<Claim>();
    this.#claims.set(instanceId, claims.add(claim));
    this.#onChange(instanceId);
    return {
      instanceId,
      keep: () => {
        claim.keptAtMs ??= this.#monotonicMs();
      },
      [Symbol.dispose]: () => {
        if (claim.keptAtMs === undefined && claims.delete(claim)) this.#onChange(instanceId);
      },
    };
  }

  promised(instanceId: string): Promised {
    const claims = this.#claims.get(instanceId);
    if (claims === undefined || claims.size === 0) return NOTHING;
    const sum = { sessions: claims.size, cpus: 0, memoryBytes: 0, diskBytes: 0 };
    for (const { demand } of claims) {
      sum.cpus += demand.cpus;
      sum.memoryBytes += demand.memoryBytes;
      sum.diskBytes += demand.diskBytes;
    }
    return sum;
  }

  /** A report came in that was asked for at `askedAtMs`: what was kept before that is in it. */
  reported(instanceId: string, askedAtMs: number): void {
    const claims = this.#claims.get(instanceId);
    for (const claim of claims ?? []) {
      if (claim.keptAtMs !== undefined && claim.keptAtMs < askedAtMs) claims?.delete(claim);
    }
    this.#onChange(instanceId);
  }

  forget(instanceId: string): void {
    this.#claims.delete(instanceId);
  }
}
