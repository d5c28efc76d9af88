import type { Lease, LeaseRequest } from "./store.ts";

/** The lease as a store keeps it. The epoch stays when the lease is given up or runs out, and only ever grows. */
export interface LeaseState {
  readonly epoch: number;
  readonly holder: string | undefined;
  readonly ttlMs: number;
  readonly expiresAtMs: number;
}

export const NEVER_LEASED: LeaseState = { epoch: 0, holder: undefined, ttlMs: 0, expiresAtMs: 0 };

/**
 * A lease whose end lies further ahead than twice its time was written before the clock went back. It counts as run out,
 * for the fencing epoch keeps its former holder from doing harm, and no caller waits for the clock to come round again.
 */
const isHeld = (state: LeaseState, nowMs: number): boolean =>
  state.holder !== undefined && nowMs < state.expiresAtMs && state.expiresAtMs <= nowMs + 2 * state.ttlMs;

/** The state after the request, or undefined if another holder has the lease. */
export function grantLease(state: LeaseState, request: LeaseRequest, nowMs: number): LeaseState | undefined {
  const held = isHeld(state, nowMs);
  if (held && state.holder !== request.holder) return undefined;
  return {
    epoch: held ? state.epoch : state.epoch + 1,
    holder: request.holder,
    ttlMs: request.ttlMs,
    expiresAtMs: nowMs + request.ttlMs,
  };
}

/** The state after the lease was given up; one that is not this lease stays as it is. */
export function giveUpLease(state: LeaseState, lease: Lease): LeaseState {
  const isSame = state.holder === lease.holder && state.epoch === lease.epoch;
  return isSame ? { ...state, holder: undefined } : state;
}

/** Whether a later lease has been given than the one that a write is made under. */
export const isStale = (epoch: number | undefined, state: LeaseState): boolean =>
  epoch !== undefined && epoch < state.epoch;
