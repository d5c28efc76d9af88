import { validateHeaderName, validateHeaderValue } from "node:http";

/** Headers about one connection only; a proxy makes its own. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The start of the names of headers between proxies. */
const OF_PROXIES = "proxy-";

const isOfConnection = (lower: string): boolean => HOP_BY_HOP.has(lower) || lower.startsWith(OF_PROXIES);

/** Names and values in turn, as in Node's `rawHeaders`. */
type RawHeaders = readonly string[];

/**
 * The headers of a message that its proxy passes on: without those of the connection, and without those that the message's
 * `Connection` header names. `Content-Length` always stays: it defines the end of the body. Throws if a name or a value
 * may not be sent.
 */
export function endToEndHeaders(rawHeaders: RawHeaders, isDropped: (name: string) => boolean = () => false): string[] {
  const pairs = pairsOf(rawHeaders);
  const named = pairs.filter(({ lower }) => lower === "connection").flatMap(({ value }) => value.split(","));
  const ofConnection = new Set(named.map((name) => name.trim().toLowerCase()));
  ofConnection.delete("content-length");
  return pairs.flatMap(({ name, lower, value }) => {
    if (isOfConnection(lower) || ofConnection.has(lower) || isDropped(lower)) return [];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return [name, value];
  });
}

function pairsOf(rawHeaders: RawHeaders) {
  return Array.from({ length: Math.floor(rawHeaders.length / 2) }, (_, index) => {
    const [name = "", value = ""] = rawHeaders.slice(index * 2, index * 2 + 2);
    return { name, lower: name.toLowerCase(), value };
  });
}
