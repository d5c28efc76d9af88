import type { HostCalls } from "../host-call.ts";

/** Turns beyond these are looked up again, the earliest first. */
const MAX_TURNS = 1000;

const sealed = new WeakMap<HostCalls, Map<number, string>>();

/** Remembers the snapshot of a turn that the host has named. A number is never used twice, so it stays that one. */
export function rememberTurn(calls: HostCalls, turnNumber: number, snapshotId: string): void {
  const turns = sealed.get(calls) ?? new Map<number, string>();
  sealed.set(calls, turns.set(turnNumber, snapshotId));
  const [first] = turns.keys();
  if (turns.size > MAX_TURNS && first !== undefined) turns.delete(first);
}

/** The snapshot of a turn; undefined where the host has to be asked. It may have been dropped since. */
export function recallTurn(calls: HostCalls, turnNumber: number): string | undefined {
  return sealed.get(calls)?.get(turnNumber);
}
