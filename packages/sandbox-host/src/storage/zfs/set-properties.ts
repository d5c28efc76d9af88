import { storageError } from "./failure.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** Sets properties, each as `name=value`, in their order: zfs-fuse takes one at a time. */
export async function setProperties(
  { zfs, flavor }: Pick<ZfsPool, "zfs" | "flavor">,
  change: { readonly dataset: string; readonly settings: readonly string[]; readonly doing: string },
  signal: AbortSignal,
): Promise<void> {
  const { dataset, settings, doing } = change;
  const batches = flavor === "openzfs" && settings.length > 0 ? [settings] : settings.map((one) => [one]);
  for (const batch of batches) {
    // Set twice they are as set once, so a command of unknown outcome runs again.
    const isDone = (): Promise<boolean> => Promise.resolve(false);
    const outcome = await zfs.change({ program: "zfs", args: ["set", ...batch, dataset], doing, isDone }, signal);
    if (outcome.kind === "refused") throw storageError(doing, outcome);
  }
}
