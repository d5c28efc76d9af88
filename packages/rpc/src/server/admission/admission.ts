import { type Clock, SandboxError } from "@turnbox/core";
import { ByteBudget, type ByteLimits, type Holding } from "./byte-budget.ts";
import { createRateLimiter, type RateLimit } from "./token-bucket.ts";

/** How much work is admitted. Nothing waits: what does not fit is refused at once, with a time to come back. */
export interface AdmissionLimits extends ByteLimits {
  readonly maxUnaryCalls: number;
  readonly maxStreams: number;
  /** Room for health, destroy and kill, which data never takes. */
  readonly maxReservedCalls: number;
  /** The most that one tenant holds of unary calls, and of streams. */
  readonly maxCallsPerTenant: number;
  /** The most that one tenant holds of the reserved room, so that one tenant alone never fills it. */
  readonly maxReservedPerTenant: number;
  /** The most that callers without a token hold, all together, of each kind of room. */
  readonly maxAnonymousCalls: number;
  /** Allowance of each tenant. Reserved calls are free of it. */
  readonly rate: RateLimit;
}

export const DEFAULT_ADMISSION_LIMITS: AdmissionLimits = {
  maxUnaryCalls: 1024,
  maxStreams: 2048,
  maxReservedCalls: 512,
  maxCallsPerTenant: 768,
  maxReservedPerTenant: 256,
  maxAnonymousCalls: 64,
  rate: { perSecond: 5000, burst: 10_000 },
  maxRequestBytes: 64 * 1024 * 1024,
  maxRequestBytesPerTenant: 48 * 1024 * 1024,
  maxRequestBytesPerCaller: 16 * 1024 * 1024,
};

/** Nobody in particular: callers without a token share one allowance. */
export const ANYBODY = "";

export interface CallDescription {
  readonly lane: "normal" | "reserved";
  readonly kind: "unary" | "stream";
  /** `ANYBODY` for callers without a token. */
  readonly tenant: string;
  /** The one session that the caller's token is bound to. */
  readonly sandbox?: string | undefined;
}

/** Leave for one call. It is given back once, by `release`. */
export interface CallPermit {
  /**
   * Counts so many bytes of the call's request to its caller, in the place of what was counted before, until the permit is given
   * back.
   */
  hold(bytes: number): "held" | "no room";
  /** Resolves when another call has given bytes back. */
  room(): Promise<void>;
  /** Keeps the permit until `release`, whatever happens to the connection. False where it was given back already. */
  enter(): boolean;
  /** Gives the permit back unless the call has entered: for calls that end before they begin. */
  abandon(): void;
  release(): void;
}

export interface Admission {
  /** Throws `RATE_LIMITED` or `OVERLOADED`. */
  admit(call: CallDescription): CallPermit;
  /** Bytes of requests that are held now. */
  readonly heldBytes: number;
  /** Calls that hold a permit now. */
  readonly inFlight: { readonly unary: number; readonly stream: number; readonly reserved: number };
}

const OVERLOAD_RETRY_MS = 1000;

export function createAdmission(limits: AdmissionLimits, clock: Clock): Admission {
  const rates = createRateLimiter(limits.rate, clock);
  const shareOf = (perTenant: number) => (tenant: string) =>
    tenant === ANYBODY ? Math.min(perTenant, limits.maxAnonymousCalls) : perTenant;
  const bytes = new ByteBudget(limits);
  const pools = {
    unary: createPool(limits.maxUnaryCalls, shareOf(limits.maxCallsPerTenant)),
    stream: createPool(limits.maxStreams, shareOf(limits.maxCallsPerTenant)),
    reserved: createPool(limits.maxReservedCalls, shareOf(limits.maxReservedPerTenant)),
  };
  return {
    admit: ({ lane, kind, tenant, sandbox }) => {
      const holding = bytes.open({ tenant, sandbox });
      if (lane === "reserved") return pools.reserved.take(tenant, holding);
      const waitMs = rates.take(tenant);
      if (waitMs > 0) {
        throw new SandboxError("RATE_LIMITED", "more requests than the allowance", { retryAfterMs: waitMs });
      }
      return pools[kind].take(tenant, holding);
    },
    get heldBytes() {
      return bytes.heldBytes;
    },
    get inFlight() {
      return { unary: pools.unary.size, stream: pools.stream.size, reserved: pools.reserved.size };
    },
  };
}

interface Pool {
  readonly size: number;
  take(tenant: string, holding: Holding): CallPermit;
}

function createPool(capacity: number, shareOf: (tenant: string) => number): Pool {
  const held = new Map<string, number>();
  let size = 0;
  const take = (tenant: string, holding: Holding): CallPermit => {
    const ofTenant = held.get(tenant) ?? 0;
    if (size >= capacity || ofTenant >= shareOf(tenant)) {
      throw new SandboxError("OVERLOADED", "as many calls are in flight as are admitted", {
        retryAfterMs: OVERLOAD_RETRY_MS,
      });
    }
    size += 1;
    held.set(tenant, ofTenant + 1);
    return createPermit(holding, () => {
      size -= 1;
      const left = (held.get(tenant) ?? 1) - 1;
      if (left > 0) held.set(tenant, left);
      else held.delete(tenant);
    });
  };
  return {
    take,
    get size() {
      return size;
    },
  };
}

function createPermit(holding: Holding, giveBack: () => void): CallPermit {
  let state: "claimed" | "entered" | "released" = "claimed";
  const release = (): void => {
    if (state === "released") return;
    state = "released";
    holding.set(0);
    giveBack();
  };
  return {
    // A body may go on to arrive after its call is over.
    hold: (bytes) => holding.set(state === "released" ? 0 : bytes),
    room: holding.room,
    enter: () => {
      if (state === "claimed") state = "entered";
      return state === "entered";
    },
    abandon: () => {
      if (state === "claimed") release();
    },
    release,
  };
}
