import { join } from "node:path";
import type { BaseRef, HeadRef } from "../storage.ts";
import { checkLayoutNames, type LayoutNames } from "./layout-names.ts";

/** The names of datasets in the pool and of paths on the disk. They are derived from ids, so nothing has to be recorded. */
export interface Layout {
  readonly pool: string;
  /** The value of the ownership mark. */
  readonly home: string;
  readonly poolDirectory: string;
  readonly imagePath: string;
  readonly mountRoot: string;
  readonly bases: string;
  readonly sessions: string;
  /** Read-only clones that are open as views. */
  readonly views: string;
  readonly journals: string;
  /** An empty dataset with a reservation: tenants never fill the pool, and what frees space always has room to work. */
  readonly reserved: string;
  baseName(name: string): string;
  base(base: BaseRef): string;
  baseSnapshot(base: BaseRef): string;
  baseMount(base: BaseRef): string;
  /** A base that was received, by its guid, beside one of the same digest that was made here. */
  receivedBase(base: BaseRef, guid: string): string;
  session(token: string): string;
  sessionMount(token: string): string;
  head(head: HeadRef): string;
  headMount(head: HeadRef): string;
  view(name: string): string;
  viewMount(name: string): string;
  journalsOf(token: string): string;
  journalsMount(token: string): string;
}

export interface LayoutOptions extends LayoutNames {
  /** Ten hex digits or more that belong to the real path of the home. */
  readonly homeId: string;
  readonly poolDirectory: string;
  readonly mountRoot: string;
}

export function createLayout({ homeId, poolDirectory, mountRoot, ...names }: LayoutOptions): Layout {
  checkLayoutNames(names);
  const pool = names.poolName ?? `tbx${homeId.slice(0, 10)}`;
  const bases = `${pool}/${names.basesDataset ?? "bases"}`;
  const sessions = `${pool}/${names.sessionsDataset ?? "sessions"}`;
  const views = `${pool}/views`;
  const base = (ref: BaseRef): string => `${bases}/${ref.name}/${ref.digest}`;
  return {
    pool,
    home: homeId,
    poolDirectory,
    imagePath: join(poolDirectory, "pool.img"),
    mountRoot,
    bases,
    sessions,
    views,
    journals: `${pool}/journals`,
    reserved: `${pool}/reserved`,
    baseName: (name) => `${bases}/${name}`,
    base,
    baseSnapshot: (ref) => `${base(ref)}@base`,
    // No digest has a dot.
    receivedBase: (ref, guid) => `${base(ref)}.${guid}`,
    // Tokens never begin with a dot.
    baseMount: (ref) => join(mountRoot, ".bases", ref.name, ref.digest),
    session: (token) => `${sessions}/${token}`,
    sessionMount: (token) => join(mountRoot, token),
    head: ({ token, generation }) => `${sessions}/${token}/g${generation}`,
    headMount: ({ token, generation }) => join(mountRoot, token, `g${generation}`),
    view: (name) => `${views}/${name}`,
    // Two levels: the removal of the mount point of one view must not remove the directory that the next is made in.
    viewMount: (name) => join(mountRoot, ".views", name, "files"),
    journalsOf: (token) => `${pool}/journals/${token}`,
    journalsMount: (token) => join(mountRoot, ".journals", token, "files"),
  };
}

/** The head that a dataset is; undefined if it is none. */
export function headOf({ sessions }: Pick<Layout, "sessions">, dataset: string): HeadRef | undefined {
  if (!dataset.startsWith(`${sessions}/`)) return undefined;
  const [, token, digits] = /^([^/@]+)\/g(\d+)$/.exec(dataset.slice(sessions.length + 1)) ?? [];
  return token === undefined || digits === undefined ? undefined : { token, generation: Number(digits) };
}

/** The base that a dataset or its snapshot is, and the guid that one that was received is named by; undefined if it is none. */
export function baseOf(
  { bases }: Pick<Layout, "bases">,
  dataset: string,
): { readonly base: BaseRef; readonly receivedGuid?: string } | undefined {
  if (!dataset.startsWith(`${bases}/`)) return undefined;
  const [, name, digest, receivedGuid] =
    /^([^/@]+)\/([0-9a-f]+)(?:\.(\d+))?(?:@base)?$/.exec(dataset.slice(bases.length + 1)) ?? [];
  if (name === undefined || digest === undefined) return undefined;
  return { base: { name, digest }, ...(receivedGuid === undefined ? {} : { receivedGuid }) };
}

/** The name of a snapshot without the filesystem that it hangs on. */
export function shortName(snapshot: string): string {
  return snapshot.slice(snapshot.indexOf("@") + 1);
}

/** The filesystem that a snapshot hangs on. */
export function filesystemOf(snapshot: string): string {
  return snapshot.split("@")[0] ?? snapshot;
}

/** The generation in the name of a head or of one of its snapshots. */
export function generationOf(dataset: string): number | undefined {
  const digits = /\/g(\d+)(@|$)/.exec(dataset)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
