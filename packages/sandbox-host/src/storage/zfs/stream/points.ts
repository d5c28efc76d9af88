import { isViewSnapshot } from "../../names.ts";
import { isOurs } from "../datasets.ts";
import { filesystemOf, shortName } from "../layout.ts";
import { HOME_PROPERTY, RECEIVED_PROPERTY, RECEIVING_PROPERTY } from "../marks.ts";
import { parseBytes, type Property } from "../parse.ts";
import type { ZfsPool } from "../zfs-pool.ts";

/** A filesystem or a snapshot with what streams go by, marked or not. */
export interface StreamPoint {
  readonly name: string;
  readonly guid: string;
  readonly createdTxg: number;
  /** The snapshot that a filesystem was cloned from. */
  readonly origin?: string;
  /** By its own mark: it is complete. */
  readonly isOurs: boolean;
  /** A head that consists of received snapshots. */
  readonly isReceived: boolean;
  /** The dataset below it that is being received. */
  readonly receiving?: string;
}

const PROPERTIES = ["guid", "createtxg", "origin", HOME_PROPERTY, RECEIVED_PROPERTY, RECEIVING_PROPERTY];

/** The dataset and all below it, oldest first; nothing if it is not there. */
export async function readPoints(
  { datasets, layout }: Pick<ZfsPool, "datasets" | "layout">,
  root: string,
  signal: AbortSignal,
): Promise<readonly StreamPoint[]> {
  return [...(await datasets.properties(root, PROPERTIES, signal))]
    .map(([name, properties]) => toPoint(name, properties, isOurs(properties, layout)))
    .sort((left, right) => left.createdTxg - right.createdTxg);
}

/** Names of what is being received below the dataset, or was when a service died: it has no mark, and is ours. */
export async function beingReceived(pool: ZfsPool, root: string, signal: AbortSignal): Promise<readonly string[]> {
  return unfinishedIn(await readPoints(pool, root, signal)).map(({ name }) => name);
}

/** The same among points: filesystems without a mark that the dataset above them names. */
export function unfinishedIn(points: readonly StreamPoint[]): readonly StreamPoint[] {
  const named = new Set(points.flatMap(({ name, isOurs: ours, receiving }) => (ours ? [`${name}/${receiving}`] : [])));
  return points.filter(({ name, isOurs: ours }) => !ours && named.has(name));
}

/** The snapshots of a filesystem that callers made, oldest first. */
export function snapshotsOf(points: readonly StreamPoint[], filesystem: string): readonly StreamPoint[] {
  return points.filter(({ name }) => isCallersSnapshot(name) && filesystemOf(name) === filesystem);
}

export function isCallersSnapshot(name: string): boolean {
  return name.includes("@") && !isViewSnapshot(shortName(name));
}

function toPoint(name: string, properties: ReadonlyMap<string, Property>, ours: boolean): StreamPoint {
  const own = (property: string): string | undefined => {
    const found = properties.get(property);
    return found?.source === "local" ? found.value : undefined;
  };
  const origin = properties.get("origin")?.value ?? "-";
  const receiving = own(RECEIVING_PROPERTY);
  return {
    name,
    guid: properties.get("guid")?.value ?? "",
    createdTxg: parseBytes(properties.get("createtxg")?.value),
    isOurs: ours,
    isReceived: own(RECEIVED_PROPERTY) === "yes",
    ...(origin === "-" || origin === "" ? {} : { origin }),
    ...(receiving === undefined ? {} : { receiving }),
  };
}
