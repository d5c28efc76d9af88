import type { Call } from "@turnbox/core";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { listAll } from "../manifest/list-archives.ts";
import { digestOfPartKey, partKey, PARTS_PREFIX } from "../object/object-record.ts";
import type { DigestSet } from "./digest-set.ts";

/** A part that nothing named when it was looked for. */
export interface Candidate {
  readonly sha256: string;
  readonly bytes: number;
}

export interface CandidateOptions {
  readonly store: ObjectStore;
  readonly marked: DigestSet;
  /** Parts that were stored later stay: their manifest may be on its way. */
  readonly beforeMs: number;
}

/** The parts in the range of the marks that are old and not marked, in the order of their digests. */
export async function* listCandidates(
  { store, marked, beforeMs }: CandidateOptions,
  call: Call,
): AsyncGenerator<Candidate> {
  const first = marked.start.toString(16).padStart(8, "0");
  const after = marked.start === 0 ? undefined : `${PARTS_PREFIX}${first.slice(0, 2)}/${first}`;
  for await (const objects of listAll(store, { prefix: PARTS_PREFIX, ...(after && { after }) }, call)) {
    for (const { key, bytes, modifiedAtMs } of objects) {
      const sha256 = digestOfPartKey(key);
      if (sha256 === undefined) continue;
      const digest = Buffer.from(sha256, "hex");
      if (digest.readUInt32BE() >= marked.end) return;
      if (modifiedAtMs < beforeMs && !marked.has(digest)) yield { sha256, bytes };
    }
  }
}

export const keysOf = (candidates: readonly Candidate[]): readonly string[] =>
  candidates.map(({ sha256 }) => partKey(sha256));

export const totalOf = (candidates: readonly Candidate[]): { readonly parts: number; readonly bytes: number } => ({
  parts: candidates.length,
  bytes: candidates.reduce((sum, { bytes }) => sum + bytes, 0),
});
