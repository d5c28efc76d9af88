import { invalidArgument, randomToken, SandboxError } from "@turnbox/core";
import type { BaseRef, HeadRef, Marks, SessionSpec, SnapshotRef } from "./model.ts";
import type { Point } from "./views.ts";

const MAX_MARK_BYTES = 512;
const VIEW_NAME_LENGTH = 16;
const VIEW_SNAPSHOT = /^v-([0-9a-z]{16})$/;

/** Refuses template names and digests that could not be a directory or a dataset of their own. */
export function checkBase(base: BaseRef): void {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(base.name) || base.name.includes("..")) {
    throw invalidArgument(
      "template",
      "must begin with a lower-case letter or digit, then those, dot, underscore or hyphen, at most 63",
    );
  }
  if (!/^[0-9a-f]{1,128}$/.test(base.digest))
    throw invalidArgument("digest", "must be lower-case hex of at most 128 digits");
}

export function checkToken(token: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(token))
    throw invalidArgument("token", "must be letters, digits, underscore or hyphen, at most 64");
}

export function checkHead(head: HeadRef): void {
  checkToken(head.token);
  if (!Number.isSafeInteger(head.generation) || head.generation < 1)
    throw invalidArgument("generation", "must be a whole number from 1");
}

export function checkSnapshot(snapshot: SnapshotRef): void {
  checkToken(snapshot.token);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(snapshot.name)) {
    throw invalidArgument(
      "snapshot",
      "must begin with a letter or digit, then those, dot, underscore or hyphen, at most 64",
    );
  }
}

/** A view's own name, never used twice. */
export function newViewName(): string {
  return randomToken(VIEW_NAME_LENGTH);
}

/** The snapshot that a view of a head stands on. Names of this form are kept for views, and are in no listing. */
export function viewSnapshotName(view: string): string {
  return `v-${view}`;
}

/** The view that a snapshot was taken for; undefined if it is none of these. */
export function viewOfSnapshot(name: string): string | undefined {
  return VIEW_SNAPSHOT.exec(name)?.[1];
}

export function isViewSnapshot(name: string): boolean {
  return viewOfSnapshot(name) !== undefined;
}

/** Refuses what no caller may name a snapshot. */
export function checkNewSnapshot(snapshot: SnapshotRef): void {
  checkSnapshot(snapshot);
  if (isViewSnapshot(snapshot.name)) throw invalidArgument("snapshot", "names of this form are kept for views");
}

export function checkPoint(point: Point): void {
  if (point.kind === "head") checkHead(point.head);
  else checkSnapshot(point.snapshot);
}

export function checkMarks(marks: Marks): void {
  for (const [key, value] of Object.entries(marks)) {
    if (!/^[a-z_]{1,64}$/.test(key))
      throw invalidArgument("marks", "keys must be lower-case letters and underscores, at most 64");
    if (!value.isWellFormed() || value.includes("\0") || Buffer.byteLength(value) > MAX_MARK_BYTES) {
      throw invalidArgument(`marks.${key}`, `must be text of at most ${MAX_MARK_BYTES} bytes`);
    }
  }
}

/** The bound of a session's first head, whose origin refers to so many bytes. */
export function firstRefquota(
  spec: Pick<SessionSpec, "quotaBytes" | "refquotaBytes">,
  referencedBytes: number,
): number | undefined {
  if (spec.refquotaBytes !== undefined) return Math.max(spec.refquotaBytes, referencedBytes);
  return spec.quotaBytes === undefined ? undefined : referencedBytes + spec.quotaBytes;
}

export function baseNotFound(base: BaseRef): SandboxError {
  return new SandboxError("TEMPLATE_NOT_FOUND", `there is no template ${base.name}@${base.digest}`);
}

export function baseInUse(base: BaseRef): SandboxError {
  return new SandboxError("TEMPLATE_IN_USE", `sessions depend on the template ${base.name}@${base.digest}`);
}

export function headNotFound(head: HeadRef): SandboxError {
  return new SandboxError("SESSION_NOT_FOUND", `the storage has no generation ${head.generation} of this session`);
}

/** A head is there, and is not the one that was asked for. */
export function headDiffers({ token, generation }: HeadRef, cause?: unknown): SandboxError {
  const message = `generation ${generation} of ${token} is there already, from another origin, and may be in use`;
  return new SandboxError("STORAGE_UNAVAILABLE", message, { admitted: "no", metadata: { failure: "exists" }, cause });
}

export function sessionNotFound(): SandboxError {
  return new SandboxError("SESSION_NOT_FOUND", "the storage has no such session");
}

export function snapshotNotFound(): SandboxError {
  return new SandboxError("SNAPSHOT_NOT_FOUND", "the storage has no such snapshot");
}

export function snapshotInUse(what: string): SandboxError {
  const why = "something that lives was cloned from it, or it is being sent";
  return new SandboxError("SNAPSHOT_IN_USE", `${what} cannot go: ${why}`);
}

/** A stream of which nothing was taken in. */
export function streamDamaged(why: string, cause?: unknown): SandboxError {
  return new SandboxError("STREAM_DAMAGED", `the stream cannot be taken in: ${why}`, { cause });
}

/** Refuses what is no guid, in decimal digits as backends print it. */
export function checkGuid(guid: string): void {
  if (!/^[1-9][0-9]{0,19}$/.test(guid)) throw invalidArgument("guid", "must be a decimal number of at most 20 digits");
}
