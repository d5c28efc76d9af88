/** What is kept for somebody, oldest first. */
export interface Held {
  readonly token: string;
  readonly bytes: number;
}

/** What has to go so that the rest is within a budget: again and again the oldest of the session that holds most. */
export function overBudget<Item extends Held>(items: readonly Item[], maxBytes: number): readonly Item[] {
  const kept = new Map<string, { readonly items: Item[]; bytes: number }>();
  let all = 0;
  for (const item of items) {
    const own = kept.get(item.token) ?? { items: [], bytes: 0 };
    kept.set(item.token, own);
    own.items.push(item);
    own.bytes += item.bytes;
    all += item.bytes;
  }
  const over: Item[] = [];
  while (all > maxBytes) {
    const largest = [...kept.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
    const oldest = largest.items.shift();
    if (oldest === undefined) break;
    largest.bytes -= oldest.bytes;
    all -= oldest.bytes;
    over.push(oldest);
  }
  return over;
}
