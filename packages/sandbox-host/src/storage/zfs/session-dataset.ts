import type { SessionDataset, ZfsPool } from "./zfs-pool.ts";

/**
 * The dataset of a session that is this home's, from memory if it was seen before; undefined if there is none. One
 * that has gone without this instance's doing shows when a command on it is refused.
 */
export async function findSessionDataset(
  { datasets, layout, sessionDatasets }: ZfsPool,
  token: string,
  signal: AbortSignal,
): Promise<SessionDataset | undefined> {
  const known = sessionDatasets.get(token);
  if (known !== undefined) return known;
  const dataset = await datasets.find(layout.session(token), signal);
  if (dataset !== undefined) sessionDatasets.set(token, { quotaBytes: dataset.quotaBytes });
  return dataset;
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
