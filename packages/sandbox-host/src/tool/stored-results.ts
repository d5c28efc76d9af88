import { fairCap } from "../record/fair-cap.ts";
import type { Records } from "../record/records.ts";
import type { LargeContent, ResultFiles } from "../record/result-files.ts";
import type { KnownCall } from "../record/row.ts";
import { type ContentBlock, type LedgerEntry, type ToolResult, withoutContent } from "./result.ts";

/** What results may take on the disk. */
export interface ResultBounds {
  readonly sessionBytes: number;
  readonly hostBytes: number;
}

interface CallKey {
  readonly token: string;
  readonly callId: string;
}

/** A larger result is a file. */
const MAX_INLINE_BYTES = 64 * 1024;
/** Over a bound, this much of it is kept, so that not every call has to drop something. */
const KEPT_SHARE = 7 / 8;

/**
 * The results of calls: small ones in the records, large ones as files, all within bounds of bytes. Over a bound of its
 * session the oldest results of that session are dropped, over the host's those of the sessions that hold most. What is
 * counted in memory is never less than what is stored, and is put right whenever it reaches a bound.
 */
export class StoredResults {
  readonly #records: Records;
  readonly #files: ResultFiles;
  readonly #bounds: ResultBounds;
  #bySession = new Map<string, number>();
  /** Charged, and not stored yet. */
  readonly #underWay = new Map<string, number>();
  #total = 0;
  #trimming: Promise<void> | undefined;

  constructor(deps: { readonly records: Records; readonly files: ResultFiles; readonly bounds: ResultBounds }) {
    this.#records = deps.records;
    this.#files = deps.files;
    this.#bounds = deps.bounds;
  }

  /** Puts the end of a call on record with its result; a result that is larger than a session may keep, without it. */
  async finish(key: CallKey, { result, headGeneration }: LedgerEntry): Promise<void> {
    const end = { ...key, headGeneration };
    const inline = inlineForm(result);
    if (inline !== undefined) {
      const resultBytes = Buffer.byteLength(inline);
      await this.#charged(key.token, resultBytes, () =>
        this.#records.call("finishCall", { ...end, result: inline, resultBytes }),
      );
      return;
    }
    const stub = stubOf(result);
    const estimate = sizeOf(result);
    if (estimate > this.#bounds.sessionBytes || estimate > this.#bounds.hostBytes) {
      await this.#records.call("finishCall", { ...end, result: stub, resultBytes: 0 });
      return;
    }
    await this.#charged(key.token, estimate, async () => {
      const { name, bytes } = await this.#files.write(toLarge(result));
      await this.#records.call("finishCall", { ...end, result: stub, resultBytes: bytes, resultFile: name });
    });
  }

  /** The result of a call that has ended; null if its end was not recorded. */
  async load({ result: text, resultFile }: KnownCall): Promise<ToolResult | null> {
    if (text === null) return null;
    const stored = JSON.parse(text) as ToolResult;
    if (stored.contentDropped === undefined) return stored;
    const large = resultFile === null ? undefined : await this.#files.read(resultFile);
    return large === undefined ? withoutContent(stored) : restored(stored, large);
  }

  /** Counts what is stored, and brings it within the bounds. */
  async tend(): Promise<void> {
    this.#trimming ??= this.#trim().finally(() => {
      this.#trimming = undefined;
    });
    await this.#trimming;
  }

  /** Does not wait for anything while there is room. */
  async #charged(token: string, bytes: number, store: () => Promise<void>): Promise<void> {
    this.#add(token, bytes);
    this.#underWay.set(token, (this.#underWay.get(token) ?? 0) + bytes);
    try {
      if (this.#isOver(token)) await this.tend();
      await store();
    } finally {
      const left = (this.#underWay.get(token) ?? 0) - bytes;
      if (left > 0) this.#underWay.set(token, left);
      else this.#underWay.delete(token);
    }
  }

  #add(token: string, bytes: number): void {
    this.#bySession.set(token, (this.#bySession.get(token) ?? 0) + bytes);
    this.#total += bytes;
  }

  #isOver(token: string): boolean {
    return (this.#bySession.get(token) ?? 0) > this.#bounds.sessionBytes || this.#total > this.#bounds.hostBytes;
  }

  async #trim(): Promise<void> {
    const stored = new Map(Object.entries(await this.#records.call("resultBytes", null)));
    const held = new Map(stored);
    for (const [token, bytes] of this.#underWay) held.set(token, (held.get(token) ?? 0) + bytes);
    const { sessionBytes, hostBytes } = this.#bounds;
    const bounded = [...held].map(([token, bytes]) => ({
      token,
      bytes: bytes > sessionBytes ? Math.floor(sessionBytes * KEPT_SHARE) : bytes,
    }));
    const total = bounded.reduce((sum, { bytes }) => sum + bytes, 0);
    const cap =
      total > hostBytes
        ? fairCap(
            bounded.map(({ bytes }) => bytes),
            Math.floor(hostBytes * KEPT_SHARE),
          )
        : total;
    for (const { token, bytes } of bounded) {
      const target = Math.min(bytes, cap);
      const underWay = this.#underWay.get(token) ?? 0;
      if ((held.get(token) ?? 0) <= target) continue;
      held.set(token, underWay + (await this.#dropDownTo(token, Math.max(0, target - underWay))));
    }
    this.#bySession = held;
    this.#total = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  async #dropDownTo(token: string, keepBytes: number): Promise<number> {
    return await this.#records.call("dropResults", { token, keepBytes });
  }
}

/** Undefined for a result that is too large for the records. */
function inlineForm(result: ToolResult): string | undefined {
  if (sizeOf(result) > MAX_INLINE_BYTES) return undefined;
  const text = JSON.stringify(result);
  return text.length > MAX_INLINE_BYTES ? undefined : text;
}

function sizeOf({ content, blocks = [] }: ToolResult): number {
  const texts = blocks.map((block) => (block.kind === "text" ? block.text : block.base64));
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), Buffer.byteLength(content));
}

function stubOf({ blocks: _, ...result }: ToolResult): string {
  return JSON.stringify({ ...result, content: "", contentDropped: true } satisfies ToolResult);
}

function toLarge({ content, blocks }: ToolResult): LargeContent {
  return {
    content,
    blocks: (blocks ?? []).map((block) =>
      block.kind === "text"
        ? { about: { kind: block.kind }, text: block.text }
        : { about: { kind: block.kind, mediaType: block.mediaType }, text: block.base64 },
    ),
  };
}

function restored({ contentDropped: _, ...stub }: ToolResult, { content, blocks }: LargeContent): ToolResult {
  const parts = blocks.map(
    ({ about, text }): ContentBlock =>
      about["kind"] === "text"
        ? { kind: "text", text }
        : { kind: "image", mediaType: about["mediaType"] ?? "", base64: text },
  );
  return { ...stub, content, ...(parts.length === 0 ? {} : { blocks: parts }) };
}
