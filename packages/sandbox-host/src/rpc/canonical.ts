import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";

/** A request as text in which equal requests are equal, whatever the wire format and the order of their maps. */
export function canonicalRequest<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): string {
  return JSON.stringify(sortKeys(toJson(desc, message)));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortKeys(inner)]));
}
