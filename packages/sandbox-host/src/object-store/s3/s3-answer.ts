import { type ContentCheck, PartsCheck, WholeCheck } from "../content-check.ts";
import type { ObjectInfo } from "../object-store.ts";
import { parseKey } from "../rules.ts";
import { SHA256_MARK } from "./conditional-put.ts";
import { PART_BYTES_MARK } from "./multipart-put.ts";

interface Described {
  readonly ETag?: string | undefined;
  readonly LastModified?: Date | undefined;
}

interface Answer {
  readonly Metadata?: Record<string, string> | undefined;
  readonly ChecksumSHA256?: string | undefined;
}

export const infoOf = (
  key: string,
  { ETag: etag = "", LastModified: modified }: Described,
  bytes: number,
): ObjectInfo => ({
  key,
  bytes,
  etag,
  modifiedAtMs: modified?.getTime() ?? 0,
});

/**
 * What the content of an object is compared with: our own SHA-256 beside it, or the server's checksum of what was put in parts.
 * Undefined if there is neither: an object of others, or a server that keeps no checksums.
 */
export function checkOf({ Metadata: marks = {}, ChecksumSHA256: checksum }: Answer): ContentCheck | undefined {
  const whole = marks[SHA256_MARK];
  if (whole !== undefined) return new WholeCheck(whole);
  const partBytes = Number(marks[PART_BYTES_MARK]);
  if (checksum?.includes("-") !== true || !Number.isSafeInteger(partBytes) || partBytes < 1) return undefined;
  return new PartsCheck(checksum, partBytes);
}

/** The length of the whole object by the header field of a part: `bytes 0-9/100`. */
export function totalOf(contentRange: string | undefined): number | undefined {
  const total = /^bytes \d+-\d+\/(\d+)$/.exec(contentRange ?? "")?.[1];
  return total === undefined ? undefined : Number(total);
}

/** Whether a key of the bucket is one that the port could have given. */
export function isOwnKey(key: string): boolean {
  try {
    parseKey("key", key);
    return true;
  } catch {
    return false;
  }
}
