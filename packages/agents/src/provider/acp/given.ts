/** The entries that are there: neither undefined nor null, which the protocol has for the same. */
export function given<T extends Record<string, unknown>>(entries: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const there = Object.entries(entries).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(there) as { [K in keyof T]?: NonNullable<T[K]> };
}
