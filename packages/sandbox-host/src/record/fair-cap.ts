/**
 * The most that each may keep so that all together keep no more than `total`: those that have less keep all of theirs, so
 * that one with much never takes from one with little.
 */
export function fairCap(sizes: Iterable<number>, total: number): number {
  const ascending = [...sizes].sort((a, b) => a - b);
  let left = total;
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return Math.max(0, share);
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}
