import { checkToken, firstRefquota, sessionNotFound } from "../names.ts";
import type { Head, SessionBound, StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { toHead } from "./heads.ts";
import { withOrigin } from "./origins.ts";
import { findSessionDataset, outerQuota } from "./session-dataset.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** The same two bounds that a session is made with: a refquota of the head and a wider quota of its dataset. */
export async function boundSession(pool: ZfsPool, spec: SessionBound, { signal }: StorageCall): Promise<Head> {
  checkToken(spec.token);
  const { layout, sessionDatasets } = pool;
  const first = { token: spec.token, generation: 1 };
  if ((await findSessionDataset(pool, spec.token, signal)) === undefined) throw sessionNotFound();
  const refquotaBytes = await withOrigin(pool, spec.origin, {
    signal,
    need: "size",
    work: ({ referencedBytes }) => Promise.resolve(firstRefquota(spec, referencedBytes ?? 0)),
  });
  const quotaBytes = outerQuota(pool, refquotaBytes);
  sessionDatasets.delete(spec.token);
  await setBound(pool, { dataset: layout.session(spec.token), property: "quota", bytes: quotaBytes }, signal);
  await setBound(pool, { dataset: layout.head(first), property: "refquota", bytes: refquotaBytes ?? 0 }, signal);
  sessionDatasets.set(spec.token, { quotaBytes });
  return toHead(pool, first, refquotaBytes);
}

async function setBound(
  { zfs, datasets }: ZfsPool,
  bound: { readonly dataset: string; readonly property: "quota" | "refquota"; readonly bytes: number },
  signal: AbortSignal,
): Promise<void> {
  const { dataset, property, bytes } = bound;
  const doing = "bounding a session";
  const isDone = async (probe: AbortSignal): Promise<boolean> =>
    (await datasets.find(dataset, probe))?.[`${property}Bytes`] === bytes;
  const args = ["set", `${property}=${bytes === 0 ? "none" : bytes}`, dataset];
  const outcome = await zfs.change({ program: "zfs", args, doing, isDone }, signal);
  if (outcome.kind === "done") return;
  throw outcome.failure === "not-found" ? sessionNotFound() : storageError(doing, outcome);
}
