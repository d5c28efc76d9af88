import { createHash } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { NetworkPolicy } from "../network-policy/policy.ts";
import type { Marks } from "../storage/storage.ts";

const MARK = "network_policy";
/** What one mark holds. */
const PART_LENGTH = 512;
/** Each part is a property of the dataset. A policy that needs more of them is not kept. */
const MAX_PARTS = 32;
const MAX_TEXT_BYTES = 1024 * 1024;
const PARTS = /^parts:(\d{1,2}):([0-9a-f]{16})$/;

/**
 * The marks that hold a session's network policy: its text if that fits into one mark. A longer one is compressed, in parts,
 * with a digest of the whole: parts are written one after the other, and those of two policies must never be read as one.
 */
export function policyMarks(policy: NetworkPolicy | null): Marks {
  if (policy === null) return {};
  const text = JSON.stringify(policy);
  if (Buffer.byteLength(text) <= PART_LENGTH) return { [MARK]: text };
  const packed = deflateRawSync(text).toString("base64url");
  const parts = packed.match(new RegExp(`.{1,${PART_LENGTH}}`, "g")) ?? [];
  if (parts.length > MAX_PARTS) return { [MARK]: "too long" };
  return {
    [MARK]: `parts:${parts.length}:${digestOf(packed)}`,
    ...Object.fromEntries(parts.map((part, index) => [`${MARK}_${letterPair(index)}`, part])),
  };
}

/** The policy in a session's marks. Null, which denies everything, if there is none or if it cannot be read as a whole. */
export function readPolicyMarks(marks: Marks): NetworkPolicy | null {
  try {
    const policy: unknown = JSON.parse(textOf(marks));
    return isPolicy(policy) ? policy : null;
  } catch {
    return null;
  }
}

function textOf(marks: Marks): string {
  const first = marks[MARK] ?? "";
  const [, count, digest] = PARTS.exec(first) ?? [];
  if (count === undefined) return first;
  const packed = Array.from({ length: Number(count) }, (_, index) => marks[`${MARK}_${letterPair(index)}`]).join("");
  if (digestOf(packed) !== digest) return "";
  return inflateRawSync(Buffer.from(packed, "base64url"), { maxOutputLength: MAX_TEXT_BYTES }).toString("utf8");
}

function digestOf(packed: string): string {
  return createHash("sha256").update(packed).digest("hex").slice(0, 16);
}

function isPolicy(value: unknown): value is NetworkPolicy {
  if (typeof value !== "object" || value === null) return false;
  const policy = value as Readonly<Record<string, unknown>>;
  const isList = (list: unknown): boolean => Array.isArray(list) && list.every((entry) => typeof entry === "string");
  return (
    ["allowPublicIngress", "allowOutbound", "required"].every((key) => typeof policy[key] === "boolean") &&
    isList(policy["allowList"]) &&
    isList(policy["denyList"])
  );
}

/** Keys of marks are letters and underscores only: aa, ab, ... */
export function letterPair(index: number): string {
  const letter = (digit: number): string => String.fromCharCode("a".charCodeAt(0) + digit);
  return `${letter(Math.floor(index / 26))}${letter(index % 26)}`;
}
