/** The end of a stream of bytes: what came last, up to a limit. */
export interface OutputTail {
  add(data: Uint8Array): void;
  /** Says that bytes which should have come before the next ones are gone. */
  skip(bytes: number): void;
  /** What is kept, as text that begins and ends between characters. */
  text(): string;
  /** Older bytes were dropped. */
  readonly truncated: boolean;
}

export function createOutputTail(limitBytes: number): OutputTail {
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let truncated = false;

  const trim = (): void => {
    while (keptBytes > limitBytes) {
      truncated = true;
      const [first = Buffer.alloc(0), ...rest] = kept;
      const excess = keptBytes - limitBytes;
      if (first.length <= excess) {
        kept = rest;
        keptBytes -= first.length;
      } else {
        kept[0] = first.subarray(excess);
        keptBytes = limitBytes;
      }
    }
  };

  return {
    get truncated() {
      return truncated;
    },
    add: (data) => {
      if (data.length === 0) return;
      // Its own copy, and no more of it than is kept: the caller may reuse the memory, and a view would hold all of it.
      kept.push(Buffer.from(data.subarray(Math.max(0, data.length - limitBytes - 1))));
      keptBytes += kept.at(-1)?.length ?? 0;
      trim();
    },
    skip: (bytes) => {
      if (bytes === 0) return;
      truncated = true;
      kept = [];
      keptBytes = 0;
    },
    text: () => {
      const bytes = Buffer.concat(kept);
      kept = bytes.length === 0 ? [] : [bytes];
      return textBetween(bytes, truncated);
    },
  };
}

const MAX_CHARACTER_BYTES = 4;
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Bytes as text; of a cut beginning and of a character that is still to come nothing is shown. */
function textBetween(bytes: Buffer, isCut: boolean): string {
  let start = 0;
  while (isCut && start < MAX_CHARACTER_BYTES - 1 && isContinuation(bytes[start])) start += 1;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start), { stream: true });
}
