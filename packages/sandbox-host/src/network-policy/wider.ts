import { parseRange } from "./address.ts";
import { covers, DENY_ALL, type NetworkPolicy, rangesOf } from "./policy.ts";
import { RangeSet } from "./range-set.ts";

/**
 * The part of a policy that may allow more than another one does; undefined if there is none. It compares the entries of the
 * lists, so it may name a part that allows no more in effect, and never misses one that does.
 */
export function whyWider(policy: NetworkPolicy, than: NetworkPolicy | null): string | undefined {
  const limit = than ?? DENY_ALL;
  if (policy.allowPublicIngress && !limit.allowPublicIngress) return "allow_public_ingress";
  if (limit.required && !policy.required) return "required";
  if (!policy.allowOutbound) return undefined;
  if (!limit.allowOutbound) return "allow_outbound";
  if (!areDenied(limit.denyList, policy.denyList)) return "deny_list";
  return isWithin(policy.allowList, limit.allowList) ? undefined : "allow_list";
}

/** Whether every entry of a deny list is denied by the other one too. */
function areDenied(entries: readonly string[], by: readonly string[]): boolean {
  const denied = RangeSet.of(by);
  return entries.every((entry) => {
    const range = parseRange(entry);
    return range === undefined ? by.some((other) => coversEntry(other, entry)) : denied.covers(range);
  });
}

/** Whether an allow list opens nothing that the other one does not. An empty one opens all that is public. */
function isWithin(entries: readonly string[], limit: readonly string[]): boolean {
  const [own, given] = [rangesOf(entries), rangesOf(limit)];
  const closed = RangeSet.of(given.closed);
  if (!own.closed.every((entry) => isRangeOf(closed, entry))) return false;
  if (limit.length === 0) return true;
  if (entries.length === 0) return false;
  const wide = RangeSet.of(given.wide);
  const names = entries.filter((entry) => parseRange(entry) === undefined);
  return (
    own.wide.every((entry) => isRangeOf(wide, entry)) &&
    names.every((entry) => limit.some((other) => coversEntry(other, entry)))
  );
}

function isRangeOf(set: RangeSet, entry: string): boolean {
  const range = parseRange(entry);
  return range !== undefined && set.covers(range);
}

/** Whether a name or a star covers everything that another one covers. */
function coversEntry(entry: string, other: string): boolean {
  return entry === other || covers(entry, other.startsWith("*.") ? `x${other.slice(1)}` : other);
}
