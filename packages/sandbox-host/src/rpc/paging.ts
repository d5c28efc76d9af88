import { createHash } from "node:crypto";
import { invalidArgument } from "@turnbox/core";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

/**
 * One page of a list whose entries have a unique, ordered key. The token carries the key of the last entry, so entries
 * that come and go between two pages neither repeat nor hide others. It belongs to the list of `listName` only.
 */
export function pageOf<Entry>(
  entries: readonly Entry[],
  request: { readonly pageSize: number; readonly pageToken: string } | undefined,
  list: { readonly listName: string; readonly keyOf: (entry: Entry) => string },
): { readonly entries: readonly Entry[]; readonly nextPageToken: string } {
  const { size, after } = parsePage(request, list.listName);
  const sorted = [...entries].sort((a, b) => (list.keyOf(a) < list.keyOf(b) ? -1 : 1));
  const rest = after === null ? sorted : sorted.filter((entry) => list.keyOf(entry) > after);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  const more = rest.length > page.length && last !== undefined;
  return { entries: page, nextPageToken: more ? formatToken(list.keyOf(last), list.listName) : "" };
}

/** How long a page is, and the key that it begins after; null for the first one. */
export function parsePage(
  request: { readonly pageSize: number; readonly pageToken: string } | undefined,
  listName: string,
): { readonly size: number; readonly after: string | null } {
  const size = request === undefined || request.pageSize === 0 ? DEFAULT_PAGE_SIZE : request.pageSize;
  if (size > MAX_PAGE_SIZE) throw invalidArgument("page.page_size", `must be at most ${MAX_PAGE_SIZE}`);
  const after = request === undefined || request.pageToken === "" ? null : parseToken(request.pageToken, listName);
  return { size, after };
}

export function formatToken(key: string, listName: string): string {
  return Buffer.from(JSON.stringify([check(key, listName), key])).toString("base64url");
}

function parseToken(token: string, listName: string): string {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (Array.isArray(parsed) && typeof parsed[1] === "string" && parsed[0] === check(parsed[1], listName))
      return parsed[1];
  } catch {
    // Falls through to the refusal.
  }
  throw invalidArgument("page.page_token", "must be the next_page_token of an earlier page of the same list");
}

function check(key: string, listName: string): string {
  return createHash("sha256").update(`${listName}\n${key}`).digest("base64url").slice(0, 8);
}
