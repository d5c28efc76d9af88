import { randomInt } from "node:crypto";
import { rm } from "node:fs/promises";
import {
  baseNotFound,
  checkBase,
  checkHead,
  checkSnapshot,
  checkToken,
  headNotFound,
  sessionNotFound,
  snapshotNotFound,
} from "../names.ts";
import type { Leases } from "../leases.ts";
import type { BaseInfo, BaseRef, Head, HeadRef, Marks, Origin, SnapshotInfo, SnapshotRef } from "../storage.ts";

export interface FakeBase {
  readonly info: BaseInfo;
  readonly directory: string;
  readonly guid: string;
}
export interface FakeHead {
  /** Another bound is another head in the same place. */
  head: Head;
  readonly marks: Marks;
  /** A promotion changes it. */
  origin: Origin;
  mounted: "yes" | "no";
  /** The guid of the base that it came from, on a head of received snapshots. */
  receivedBase?: string | undefined;
  /** Consists of received snapshots. */
  readonly received?: boolean;
}
export interface FakeSnapshot {
  readonly info: Omit<SnapshotInfo, "usedBytes">;
  readonly directory: string;
  readonly guid: string;
}
export interface FakeSession {
  marks: Marks;
  readonly heads: Map<number, FakeHead>;
  /** Oldest first, those of views included. */
  readonly snapshots: Map<string, FakeSnapshot>;
}
export interface FakeView {
  readonly snapshot: SnapshotRef;
  /** The instance of the storage that it was opened on. */
  readonly owner: object;
}
/** What the storage holds, whichever instance looks at it. */
export interface World {
  readonly bases: Map<string, FakeBase>;
  readonly sessions: Map<string, FakeSession>;
  readonly views: Set<FakeView>;
  /** By their guids; no listing shows them. */
  readonly receivedBases: Map<string, FakeBase>;
  /** Snapshots and bases that are being sent. */
  readonly leases: Leases;
  nextDirectory: number;
  lost: readonly HeadRef[];
}

export function keyOf({ name, digest }: BaseRef): string {
  return `${name}@${digest}`;
}

/** What a snapshot that is being sent is leased by. */
export function leaseKeyOf({ token, name }: SnapshotRef): string {
  return `${token}/${name}`;
}

export function newGuid(): string {
  return String(randomInt(1, 2 ** 47));
}

/** The base that a head came from, which may be a received one. */
export function baseOfHead(world: World, { origin, receivedBase }: FakeHead): FakeBase | undefined {
  if (origin.kind !== "base") return undefined;
  const own = world.bases.get(keyOf(origin.base));
  return receivedBase === undefined || receivedBase === own?.guid ? own : world.receivedBases.get(receivedBase);
}

export function sessionOf(world: World, token: string): FakeSession {
  checkToken(token);
  const session = world.sessions.get(token);
  if (session === undefined) throw sessionNotFound();
  return session;
}

export function headOf(world: World, ref: HeadRef): FakeHead {
  checkHead(ref);
  const head = world.sessions.get(ref.token)?.heads.get(ref.generation);
  if (head === undefined) throw headNotFound(ref);
  return head;
}

export function snapshotOf(world: World, ref: SnapshotRef): FakeSnapshot {
  checkSnapshot(ref);
  const snapshot = world.sessions.get(ref.token)?.snapshots.get(ref.name);
  if (snapshot === undefined) throw snapshotNotFound();
  return snapshot;
}

export function originOf(
  world: World,
  origin: Origin,
): { readonly directory: string; readonly referencedBytes: number } {
  if (origin.kind === "base") {
    checkBase(origin.base);
    const base = world.bases.get(keyOf(origin.base));
    if (base === undefined) throw baseNotFound(origin.base);
    return { directory: base.directory, referencedBytes: base.info.referencedBytes };
  }
  const { directory, info } = snapshotOf(world, origin.snapshot);
  return { directory, referencedBytes: info.referencedBytes };
}

export function allHeads(world: World): readonly FakeHead[] {
  return [...world.sessions.values()].flatMap(({ heads }) => [...heads.values()]);
}

export function snapshotsOn({ snapshots }: FakeSession, generation: number): readonly FakeSnapshot[] {
  return [...snapshots.values()].filter(({ info }) => info.generation === generation);
}

/** Whether a head or a view stands on the snapshot, or it is being sent; `outside` leaves out heads of its own session. */
export function isUsed(world: World, { token, name }: SnapshotRef, by: "anything" | "outside"): boolean {
  const isIt = (other: SnapshotRef): boolean => other.token === token && other.name === name;
  const heads = allHeads(world).filter(({ origin }) => origin.kind === "snapshot" && isIt(origin.snapshot));
  return (
    world.leases.has(leaseKeyOf({ token, name })) ||
    heads.some(({ head }) => by === "anything" || head.token !== token) ||
    [...world.views].some(({ snapshot }) => isIt(snapshot))
  );
}

export async function removeSnapshot(session: FakeSession, { info, directory }: FakeSnapshot): Promise<void> {
  session.snapshots.delete(info.name);
  await rm(directory, { recursive: true });
}

/** With its snapshots. */
export async function removeHead(session: FakeSession, { head }: FakeHead): Promise<void> {
  session.heads.delete(head.generation);
  for (const snapshot of snapshotsOn(session, head.generation)) await removeSnapshot(session, snapshot);
  await rm(head.path, { recursive: true });
}

/** Whether the second snapshot came after the first, on the same head or on one that this one leads to. */
export function isDescendant(world: World, from: SnapshotRef, to: SnapshotRef): boolean {
  const start = snapshotOf(world, from).info;
  for (let at = snapshotOf(world, to).info; ; ) {
    if (at.token === start.token && at.generation === start.generation) {
      const names = [...sessionOf(world, at.token).snapshots.keys()];
      return names.indexOf(start.name) <= names.indexOf(at.name);
    }
    const { origin } = headOf(world, at);
    if (origin.kind === "base") return false;
    at = snapshotOf(world, origin.snapshot).info;
  }
}
