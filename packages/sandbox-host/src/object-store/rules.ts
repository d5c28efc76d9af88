import { invalidArgument } from "@turnbox/core";
import { type GetOptions, type ListOptions, MAX_PAGE, MAX_PUT_BYTES, type PutCondition } from "./object-store.ts";

/** The rules of the port that every adapter holds its callers to. Each refusal names the field and the rule. */

const MAX_KEY_LENGTH = 512;
const MAX_SEGMENT_LENGTH = 200;
const SEGMENT = /^[A-Za-z0-9._-]*$/;
const ETAG = /^[\x21-\x7e]{1,200}$/;

export function parseKey(field: string, key: string): string {
  const segments = parsePath(field, key);
  if (segments.some((segment) => segment === "")) {
    throw invalidArgument(field, "must be segments joined by single slashes, without one at either end");
  }
  return key;
}

export function parseKeys(keys: readonly string[]): readonly string[] {
  return keys.map((key) => parseKey("keys", key));
}

/** The beginning of keys: none, or whole segments and the beginning of one. */
export function parsePrefix(prefix: string): string {
  const segments = parsePath("prefix", prefix);
  if (segments.slice(0, -1).some((segment) => segment === "")) {
    throw invalidArgument("prefix", "must be the beginning of a key");
  }
  return prefix;
}

export function parseBody(body: Uint8Array): Uint8Array {
  if (body.byteLength > MAX_PUT_BYTES) throw invalidArgument("body", `must have at most ${MAX_PUT_BYTES} bytes`);
  return body;
}

/** The condition of a put; `any` if there is none. */
export function parseCondition(condition: PutCondition = { kind: "any" }): PutCondition {
  if (condition.kind === "matches" && !ETAG.test(condition.etag)) {
    throw invalidArgument("condition.etag", "must be an etag of the store: 1 to 200 visible ASCII characters");
  }
  return condition;
}

export function parseRange(range: GetOptions["range"]): GetOptions["range"] {
  if (range === undefined) return undefined;
  if (!Number.isSafeInteger(range.offset) || range.offset < 0) {
    throw invalidArgument("range.offset", "must be a whole number from 0");
  }
  if (!Number.isSafeInteger(range.bytes) || range.bytes < 1 || !Number.isSafeInteger(range.offset + range.bytes)) {
    throw invalidArgument("range.bytes", "must be a whole number from 1");
  }
  return range;
}

/** The largest page that is wanted, and the key that comes before its first one. */
export function parseListOptions({ after = "", limit = MAX_PAGE }: ListOptions): Required<ListOptions> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw invalidArgument("limit", `must be a whole number from 1 to ${MAX_PAGE}`);
  }
  return { after: after === "" ? "" : parseKey("after", after), limit };
}

function parsePath(field: string, path: string): readonly string[] {
  if (path.length > MAX_KEY_LENGTH) throw invalidArgument(field, `must have at most ${MAX_KEY_LENGTH} characters`);
  const segments = path.split("/");
  for (const segment of segments) {
    if (!SEGMENT.test(segment)) {
      throw invalidArgument(field, "must consist of letters, digits, dots, underscores, hyphens and slashes");
    }
    if (segment === "." || segment === "..") throw invalidArgument(field, "must not have . or .. as a segment");
    if (segment.length > MAX_SEGMENT_LENGTH) {
      throw invalidArgument(field, `must have at most ${MAX_SEGMENT_LENGTH} characters between two slashes`);
    }
  }
  return segments;
}
