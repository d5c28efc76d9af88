import { checkToken, sessionNotFound } from "../../names.ts";
import type { StorageCall } from "../../storage.ts";
import type { ChainLink, StreamParent } from "../../streams.ts";
import { baseOf, filesystemOf, shortName } from "../layout.ts";
import type { ZfsPool } from "../zfs-pool.ts";
import { readPoints, snapshotsOf, type StreamPoint } from "./points.ts";

/** In the order of their making, in which a parent comes before all that follow from it. */
export async function readChain(pool: ZfsPool, token: string, { signal }: StorageCall): Promise<readonly ChainLink[]> {
  checkToken(token);
  const root = pool.layout.session(token);
  const points = await readPoints(pool, root, signal);
  if (!points.some(({ name, isOurs }) => name === root && isOurs)) throw sessionNotFound();
  const complete = points.filter(({ isOurs }) => isOurs);
  const links: ChainLink[] = [];
  for (const point of complete) {
    const earlier = snapshotsOf(complete, filesystemOf(point.name));
    const index = earlier.indexOf(point);
    if (index < 0) continue;
    const before = earlier[index - 1];
    const parent =
      before === undefined ? await originOf(pool, { point, points: complete, signal }) : toParent(pool, before);
    links.push({ name: shortName(point.name), guid: point.guid, parent: parent ?? null });
  }
  return links;
}

/** What the first snapshot of a head is an increment of. */
async function originOf(
  pool: ZfsPool,
  { point, points, signal }: StorageCall & { readonly point: StreamPoint; readonly points: readonly StreamPoint[] },
): Promise<StreamParent | undefined> {
  const head = points.find(({ name }) => name === filesystemOf(point.name));
  if (head?.origin === undefined) return undefined;
  const { origin } = head;
  const known = points.find(({ name }) => name === origin);
  // In another session, or a base.
  const elsewhere = known === undefined ? await readPoints(pool, filesystemOf(origin), signal) : [];
  const found = known ?? elsewhere.find(({ name }) => name === origin);
  return found === undefined ? undefined : toParent(pool, found);
}

function toParent({ layout }: ZfsPool, { name, guid }: StreamPoint): StreamParent | undefined {
  const base = baseOf(layout, name)?.base;
  if (base !== undefined) return { guid, of: { kind: "base", base } };
  if (!name.startsWith(`${layout.sessions}/`)) return undefined;
  const token = name.slice(layout.sessions.length + 1).split("/")[0] ?? "";
  return { guid, of: { kind: "snapshot", snapshot: { token, name: shortName(name) } } };
}
