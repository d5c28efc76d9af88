import { streamDamaged } from "../../names.ts";
import type { StorageCall } from "../../storage.ts";
import { filesystemOf } from "../layout.ts";
import type { ZfsPool } from "../zfs-pool.ts";
import { readPoints } from "./points.ts";

/** Looks at what a stream has made: the snapshot that was announced, on a clone of what it had to be one of. */
export async function verifyReceived(
  pool: ZfsPool,
  { snapshot, guid, origin }: { readonly snapshot: string; readonly guid: string; readonly origin?: string },
  { signal }: StorageCall,
): Promise<void> {
  const points = await readPoints(pool, filesystemOf(snapshot), signal);
  const isThere = points.some((point) => point.name === snapshot && point.guid === guid);
  const stands = points.find(({ name }) => name === filesystemOf(snapshot))?.origin;
  if (!isThere) throw streamDamaged("it has made another snapshot");
  if (origin !== undefined && stands !== origin) throw streamDamaged("it was made a clone of something else");
}
