import type { Marks } from "../storage.ts";
import type { Property } from "./parse.ts";

/** On everything this storage makes: whose it is. Only what carries it is ever destroyed. */
export const HOME_PROPERTY = "turnbox:home";
/** On a head that consists of received snapshots, and on no other. */
export const RECEIVED_PROPERTY = "turnbox:received";
/** On a dataset: which one below it is being received, and has no mark yet. */
export const RECEIVING_PROPERTY = "turnbox:receiving";
const MARK_PREFIX = "turnbox.mark:";

/** zfs-fuse keeps 1024 bytes of a user property, a percent-encoded mark can take 1536. */
const MAX_READABLE = 900;

/**
 * User properties for marks: `turnbox.mark:<key>`. Values are percent-encoded, so that tabs and newlines do not break
 * listings and people can still read them; an empty value (which zfs refuses) and one that grows too long is base64url
 * after a `=`, which percent-encoding never yields.
 */
export function toProperties(home: string, marks: Marks): readonly string[] {
  return [...property(HOME_PROPERTY, home), ...markProperties(marks).flatMap((setting) => ["-o", setting])];
}

/** `name=value` for each mark, as `zfs set` takes it. */
export function markProperties(marks: Marks): readonly string[] {
  return Object.entries(marks).map(([key, value]) => `${MARK_PREFIX}${key}=${encodeMark(value)}`);
}

/** `-o name=value`, as `zfs create`, `clone` and `snapshot` take it. */
export function property(name: string, value: string): readonly string[] {
  return ["-o", `${name}=${value}`];
}

/** The marks among a dataset's properties; inherited ones are not its own. */
export function fromProperties(properties: ReadonlyMap<string, Property>): Marks {
  return Object.fromEntries(
    [...properties]
      .filter(([name, { source }]) => name.startsWith(MARK_PREFIX) && source === "local")
      .map(([name, { value }]) => [name.slice(MARK_PREFIX.length), decodeMark(value)]),
  );
}

export function encodeMark(value: string): string {
  const readable = encodeURIComponent(value);
  if (readable !== "" && readable.length <= MAX_READABLE) return readable;
  return `=${Buffer.from(value, "utf8").toString("base64url")}`;
}

/** A value that was not written by `encodeMark` is answered as it stands. */
export function decodeMark(encoded: string): string {
  if (encoded.startsWith("=")) return Buffer.from(encoded.slice(1), "base64url").toString("utf8");
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}
