import type { SessionPlace, ZfsPool } from "./zfs-pool.ts";

/**
 * The place of a session that is this home's, from memory where it was seen before; undefined where there is none. One
 * that has gone without this instance's doing shows when a command on it is refused.
 */
export async function findPlace(
  { datasets, layout, places }: ZfsPool,
  token: string,
  signal: AbortSignal,
): Promise<SessionPlace | undefined> {
  const known = places.get(token);
  if (known !== undefined) return known;
  const place = await datasets.find(layout.session(token), signal);
  if (place !== undefined) places.set(token, { quotaBytes: place.quotaBytes });
  return place;
}

/**
 * The outer quota of a session whose first head has this bound; 0 if it needs none. One that the pool cannot hold never
 * binds, and would cost a look at each snapshot.
 */
export function outerQuota(
  { limits, poolBytes }: Pick<ZfsPool, "limits" | "poolBytes">,
  refquotaBytes: number | undefined,
): number {
  const quotaBytes = Math.ceil((refquotaBytes ?? 0) * limits.quotaFactor);
  return poolBytes === 0 || quotaBytes < poolBytes ? quotaBytes : 0;
}
