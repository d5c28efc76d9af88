/**
 * Does the work for each item, at most `limit` at a time, and returns the results in the order of the items. After a failure no
 * further item is begun; it is thrown when what was begun has ended.
 */
export async function mapConcurrent<Item, Result>(
  items: Iterable<Item>,
  limit: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const all = [...items];
  const results: Result[] = [];
  let next = 0;
  let isFailed = false;
  const worker = async (): Promise<void> => {
    while (next < all.length && !isFailed) {
      const index = next;
      next += 1;
      try {
        results[index] = await work(all[index] as Item, index);
      } catch (failure) {
        isFailed = true;
        throw failure;
      }
    }
  };
  const workers = Array.from({ length: Math.min(Math.max(1, limit), all.length) }, worker);
  for (const end of await Promise.allSettled(workers)) if (end.status === "rejected") throw end.reason;
  return results;
}
